"""The search for planted secrets at the end of each end-to-end test finds them wherever they are said."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.fixtures.controller import Controller
from lab.fixtures.database import manifest as database
from lab.fixtures.namespaces import open_shop
from lab.fixtures.planted import ANNOTATIONS, ARGUMENT, PLANTED, VARIABLE, verify_kept
from lab.fixtures.shop import manifest
from splitter.report.log import handler

OURS = "splitter.io/splitter"
SPLITS, EVENTS = (
    f"/apis/{group}/namespaces/shop/{kind}"
    for group, kind in (("splitter.io/v1alpha1", "splits"), ("events.k8s.io/v1", "events"))
)


class Cluster:
    """An API server that has what a test says, and takes everything."""

    def __init__(self, **collections: list[dict[str, Any]] | None) -> None:
        self.api = self
        self.asked: list[str] = []
        self._collections = {SPLITS: collections.get("splits", []), EVENTS: collections.get("events", [])}

    def check(self) -> None:
        """Be well."""

    def create(self, path: str, _: object) -> None:
        """Take anything."""

    def find(self, path: str) -> dict[str, Any] | None:
        """Return a collection, None for what there is none of."""
        self.asked.append(path)
        raw = self._collections.get(path, [])
        return None if raw is None else {"items": raw}

    def request(self, method: str, path: str, **_: object) -> None:
        """Take anything."""
        self.asked.append(f"{method} {path}")


def logged(words: str, *arguments: object) -> str:
    """Return the line that the controller's own log makes."""
    record = logging.LogRecord("splitter", logging.INFO, "", 0, words, arguments, None)
    return handler("text").format(record) + "\n"


def play(home: Path, cluster: Cluster, before: str = "", meanwhile: str = "") -> None:
    """Play a test in which a controller logs this."""
    controller = Controller(home / "kubeconfig", home, {})
    controller.log.write_text(before)
    test = open_shop(cluster, controller, "shop")  # type: ignore[arg-type]
    next(test)
    with controller.log.open("a") as log:
        log.write(meanwhile)
    with pytest.raises(StopIteration):
        next(test)


class TestSearch:
    def test_all_is_well(self, tmp_path: Path) -> None:
        """Nothing is said of what is not there; two requests are all that it takes."""
        cluster = Cluster(events=[{"reportingController": OURS, "note": "well"}])
        play(tmp_path, cluster, meanwhile=logged("rendered anew changes=%s", "spec.image"))
        assert [path for path in cluster.asked if path in {SPLITS, EVENTS}] == [EVENTS, SPLITS]

    def test_finds_it_in_the_log(self, tmp_path: Path) -> None:
        """A value that was logged fails the test, with the line; the workloads are deleted all the same."""
        line = logged("rendered anew changes=%s", f"env.PLANTED.value: '' -> '{VARIABLE['value']}'")
        cluster = Cluster()
        with pytest.raises(AssertionError, match=r"splitter's log repeats.*\n.*rendered anew changes=env"):
            play(tmp_path, cluster, meanwhile=logged("one") + line + logged("other"))
        assert any(path.startswith("DELETE") for path in cluster.asked)

    def test_blames_the_test_that_it_was_said_in(self, tmp_path: Path) -> None:
        """What was logged before this test began is not of this test."""
        play(tmp_path, Cluster(), before=logged("%s", PLANTED), meanwhile=logged("one"))

    def test_finds_it_in_an_event(self, tmp_path: Path) -> None:
        """An Event of splitter's fails the test, others' do not."""
        play(tmp_path, Cluster(events=[{"reportingController": "kubelet", "note": ARGUMENT}]))
        with pytest.raises(AssertionError, match=f"an Event of splitter's repeats(?s:.*){ARGUMENT}"):
            play(tmp_path, Cluster(events=[{"reportingController": OURS, "note": f"edited {ARGUMENT}"}]))

    def test_finds_it_in_a_split(self, tmp_path: Path) -> None:
        """Anywhere in a Split, in a condition too."""
        condition = {"type": "PodsHealthy", "message": next(iter(ANNOTATIONS.values()))}
        with pytest.raises(AssertionError, match="a Split repeats"):
            play(tmp_path, Cluster(splits=[{"status": {"conditions": [condition]}}]))

    def test_no_split_is_known(self, tmp_path: Path) -> None:
        """A cluster without the kind has nothing to look through."""
        play(tmp_path, Cluster(splits=None))

    def test_of_each_controller(self, tmp_path: Path) -> None:
        """A controller of a test's own is looked through when it ends."""
        controller = Controller(tmp_path / "kubeconfig", tmp_path, {})
        controller.log.write_text(logged("%s", PLANTED))
        with pytest.raises(AssertionError, match="splitter's log repeats"):
            controller.end()

    def test_is_of_use(self) -> None:
        """What is looked for is what is planted."""
        for value in (VARIABLE["value"], ARGUMENT, *ANNOTATIONS.values()):
            with pytest.raises(AssertionError):
                verify_kept("this", [value])


@pytest.mark.parametrize("make", [lambda: manifest("web", 1), lambda: database(1)])
def test_workloads_carry_them(make: Callable[[], dict[str, Any]]) -> None:
    """The Deployment and the StatefulSet of the tests carry all three, each in its place."""
    template = make()["spec"]["template"]
    [container] = template["spec"]["containers"]
    assert VARIABLE in container["env"]
    assert ARGUMENT in container["args"]
    assert template["metadata"]["annotations"].items() >= ANNOTATIONS.items()
    assert json.dumps(template).count(PLANTED) == 3
