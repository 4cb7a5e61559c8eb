"""How Karmada reads and writes a split workload: the scripts of manifests/karmada, run as Karmada runs them.

`tests/world/test_karmada.py` runs them on the objects of a whole life.
"""

from typing import Any, Final

import pytest

from karmada import Json, is_healthy, reflected, retained
from named import NAMED, ROOT, named_tests

_MARK: Final = {"splitter.io/taken-over": '{"uid":"u","time":"2026-01-31T12:00:00Z"}'}
_SAVED: Final = {**_MARK, "splitter.io/replicas": '{"replicas":5,"left":0}'}
_GENERATION: Final = "resourcetemplate.karmada.io/generation"
_RETAIN: Final = {"resourcetemplate.karmada.io/retain-replicas": "true"}
_KINDS: Final = pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
_MODES: Final = pytest.mark.parametrize(
    ("kind", "spec", "annotations"),
    [("Deployment", {"paused": True}, _MARK), ("StatefulSet", {"replicas": 0}, _SAVED)],
)
# Karmada may be given this before a controller has written a status, or if something has written nonsense.
_BAD: Final[list[Json]] = [
    {},
    {"metadata": {}, "spec": {}, "status": {}},
    {"metadata": {"annotations": []}, "spec": [], "status": []},
    {"metadata": "web", "spec": "web", "status": "web"},
    {"metadata": {"labels": 1, "annotations": 1}, "spec": 1, "status": 1},
]


def workload(kind: str, spec: Json | None = None, status: Json | None = None, **metadata: object) -> Json:
    """Make a workload of 5 replicas that is well, but for what is given."""
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 5)
    made: Json = {"observedGeneration": 7, **counts, **(status or {})}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "generation": 7, **metadata},
        "spec": {"replicas": 5, "template": {"spec": {"volumes": [{"emptyDir": {}}]}}, **(spec or {})},
        "status": {name: value for name, value in made.items() if value is not None},
    }


def counted(
    *, replicas: int = 5, updated: int = 5, ready: int = 5, available: int = 5, generation: int = 7
) -> Json:
    """Return the status of a source at 0 with splitter's condition."""
    counts = (
        f"replicas={replicas} updated={updated} ready={ready} available={available} generation={generation}"
    )
    message = f"{available} of {replicas} replicas are available ({counts})"
    return {
        **saying(message),
        "replicas": 0,
        "updatedReplicas": 0,
        "readyReplicas": 0,
        "availableReplicas": 0,
    }


def saying(message: object) -> Json:
    """Return a status with such a condition behind another one."""
    ours = {"type": "splitter.io/Available", "status": "True", "message": message}
    return {"conditions": [{"type": "Progressing", "status": "True", "message": "replicas=9"}, ours]}


class TestRetention:
    """What Karmada writes is its template, but for the pause and the 0 of a split workload."""

    @_KINDS
    def test_keeps_nothing_of_what_is_not_split(self, kind: str) -> None:
        """Not a pause, and not a count that was changed in the member."""
        desired = workload(kind, status=None)
        assert retained(desired, workload(kind, {"paused": True, "replicas": 2})) == desired

    def test_keeps_the_pause_of_a_split_deployment(self) -> None:
        """A new count and a new template go through; so does what splitter itself has taken back."""
        desired = workload("Deployment", {"replicas": 9})
        split = workload("Deployment", {"paused": True}, annotations=_MARK)
        assert retained(desired, split)["spec"] == {**desired["spec"], "paused": True}
        assert retained(desired, workload("Deployment", annotations=_MARK)) == desired

    def test_heeds_the_pause_of_the_hub_if_nothing_is_split(self) -> None:
        """A Deployment that is paused at the hub stays so in its members."""
        desired = workload("Deployment", {"paused": True})
        assert retained(desired, workload("Deployment"))["spec"]["paused"] is True

    @pytest.mark.parametrize(("labels", "count"), [(_RETAIN, 2), ({}, 5), ({next(iter(_RETAIN)): "no"}, 5)])
    def test_keeps_the_count_if_karmadas_label_asks_for_it(self, labels: Json, count: int) -> None:
        """As Karmada's own does, for an autoscaler in the members."""
        observed = workload("Deployment", {"replicas": 2})
        assert retained(workload("Deployment", labels=labels), observed)["spec"]["replicas"] == count

    @pytest.mark.parametrize(
        ("saved", "wanted", "written"),
        [
            ('{"replicas":5,"left":0}', 5, 0),
            ('{ "left": 0, "replicas" : 5 }', 5, 0),
            (" 5 ", 5, 0),
            ('{"replicas":5,"left":0}', 6, 6),
            ('{"replicas":1,"left":0}', None, 0),
            ('{"replicas":15,"left":0}', 5, 5),
            ("five", 5, 5),
            ("", 5, 5),
            (None, 5, 5),
            ({}, 5, 5),
        ],
    )
    def test_keeps_the_0_of_a_split_statefulset(self, saved: Any, wanted: int | None, written: int) -> None:  # noqa: ANN401
        """While the hub wants the count that is saved; without a count it wants 1."""
        annotations = {**_MARK, "splitter.io/replicas": saved}
        observed = workload("StatefulSet", {"replicas": 0}, annotations=annotations)
        desired = workload("StatefulSet", {"replicas": wanted})
        assert retained(desired, observed)["spec"]["replicas"] == written

    def test_lets_placement_alone(self) -> None:
        """A StatefulSet with the mark and no saved count runs its own pods."""
        observed = workload("StatefulSet", {"replicas": 3}, annotations=_MARK)
        assert retained(workload("StatefulSet"), observed)["spec"]["replicas"] == 5

    @_KINDS
    @pytest.mark.parametrize("bad", _BAD)
    def test_writes_the_template_if_it_can_read_nothing(self, kind: str, bad: Json) -> None:
        """Whichever of both is bad."""
        desired = workload(kind)
        assert retained(desired, {"kind": kind, **bad}) == desired
        assert retained({"kind": kind, **bad}, workload(kind, annotations=_SAVED))["kind"] == kind


class TestHealth:
    """A split workload is as healthy as its twins, another one as Karmada says."""

    @_KINDS
    @pytest.mark.parametrize(
        ("status", "healthy"),
        [
            ({}, True),
            ({"observedGeneration": 6}, False),
            ({"observedGeneration": None}, False),
            ({"updatedReplicas": 4}, False),
            ({"updatedReplicas": 6, "availableReplicas": 6}, True),
            ({"availableReplicas": 4}, False),
            ({"availableReplicas": None}, False),
            (counted(), False),
        ],
    )
    def test_of_what_is_not_split(self, kind: str, status: Json, healthy: bool) -> None:
        """By Karmada's own rules, even if a condition was left behind."""
        assert is_healthy(workload(kind, status=status)) is healthy

    @_MODES
    @pytest.mark.parametrize(
        ("status", "healthy"),
        [
            (counted(), True),
            (counted(ready=3), True),
            (counted(generation=6), True),
            (counted(available=4), False),
            (counted(updated=4), False),
            (counted(replicas=6, updated=5), None),
            ({**counted(), "observedGeneration": 6}, False),
        ],
    )
    def test_of_what_is_split(
        self,
        kind: str,
        spec: Json,
        annotations: Json,
        status: Json,
        healthy: bool | None,
    ) -> None:
        """By the condition's counts. N is the Deployment's own, of a StatefulSet the condition's."""
        expected = kind == "Deployment" if healthy is None else healthy
        assert is_healthy(workload(kind, spec, status, annotations=annotations)) is expected

    @_MODES
    @pytest.mark.parametrize("message", [None, "", 5, "replicas=5 updated=5", {"replicas": 5}])
    def test_without_counts(self, kind: str, spec: Json, annotations: Json, message: object) -> None:
        """No outage because splitter is older, lacks the right, or something else writes such a condition."""
        status = {**counted(), **saying(message)}
        assert is_healthy(workload(kind, spec, status, annotations=annotations)) is True

    @_KINDS
    @pytest.mark.parametrize("bad", _BAD)
    def test_of_nothing_that_can_be_read(self, kind: str, bad: Json) -> None:
        """An answer, and no error: nothing is wanted, and nothing is missing."""
        assert is_healthy({"kind": kind, **bad}) is True


class TestStatus:
    """The hub hears of the twins' replicas."""

    def test_of_what_is_not_split(self) -> None:
        """The counts, and of which generation they are; a condition that was left behind is no count."""
        status = {**saying("replicas=1 updated=1 ready=1 available=1 generation=1"), "unavailableReplicas": 1}
        one = workload("Deployment", status=status, annotations={_GENERATION: "3"})
        assert reflected(one) == {
            "generation": 7,
            "observedGeneration": 7,
            "resourceTemplateGeneration": 3,
            **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 5),
            "unavailableReplicas": 1,
        }

    def test_of_a_statefulset_that_is_not_split(self) -> None:
        """Karmada takes no observedGeneration of it; in placement mode its counts are its own."""
        one = workload(
            "StatefulSet", status={**saying(counted()["conditions"][1]["message"]), "currentReplicas": 4}
        )
        one["metadata"]["annotations"] = {**_MARK, _GENERATION: "3"}
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 5)
        assert reflected(one) == {
            "generation": 7,
            "resourceTemplateGeneration": 3,
            **counts,
            "currentReplicas": 4,
        }

    @pytest.mark.parametrize(("counts", "missing"), [({}, None), ({"available": 3, "ready": 2}, 2)])
    def test_of_a_split_deployment(self, counts: dict[str, int], missing: int | None) -> None:
        """With what is missing, which no controller counts for a paused Deployment."""
        one = workload("Deployment", {"paused": True}, counted(**counts), annotations=_MARK)
        shown = reflected(one)
        assert shown.pop("unavailableReplicas", None) == missing
        assert shown == {
            "generation": 7,
            "observedGeneration": 7,
            "replicas": 5,
            "updatedReplicas": 5,
            "readyReplicas": counts.get("ready", 5),
            "availableReplicas": counts.get("available", 5),
        }

    @pytest.mark.parametrize(("observed", "said", "shown"), [(7, 6, 6), (7, 8, 7), (None, 7, None)])
    def test_waits_until_splitter_has_seen_the_last_change(
        self, observed: int | None, said: int, shown: int | None
    ) -> None:
        """Else the hub would call a rollout complete that the twins have not begun."""
        status = {**counted(generation=said), "observedGeneration": observed}
        one = workload("Deployment", {"paused": True}, status, annotations=_MARK)
        assert reflected(one).get("observedGeneration") == shown

    def test_of_a_split_statefulset(self) -> None:
        """It is at 0, and its counts are the twins'."""
        one = workload(
            "StatefulSet", {"replicas": 0}, counted(updated=4, ready=2, available=3), annotations=_SAVED
        )
        assert reflected(one) == {
            "generation": 7,
            "replicas": 5,
            "currentReplicas": 4,
            "updatedReplicas": 4,
            "readyReplicas": 2,
            "availableReplicas": 3,
        }

    @_MODES
    @pytest.mark.parametrize("message", [None, "", 5, "replicas=5 updated=5", {"replicas": 5}])
    def test_without_counts(self, kind: str, spec: Json, annotations: Json, message: object) -> None:
        """What its controller counts."""
        status = {**counted(), **saying(message)}
        assert reflected(workload(kind, spec, status, annotations=annotations))["replicas"] == 0

    @_KINDS
    @pytest.mark.parametrize("bad", _BAD)
    def test_of_nothing_that_can_be_read(self, kind: str, bad: Json) -> None:
        """Nothing is shown, and no error raised."""
        assert reflected({"kind": kind, **bad}) == {}


def test_the_page_names_tests_that_there_are() -> None:
    """What happens if something is missing is no mere promise."""
    page = (ROOT / "docs/how-to/karmada.md").read_text(encoding="utf-8")
    rows = page.partition("## What may be missing")[2].partition("\n## ")[0]
    listed = NAMED.findall(rows)
    assert len(listed) >= 10
    assert set(listed) <= set(named_tests())
