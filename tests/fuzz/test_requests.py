"""What a tenant writes never leads out of its namespace: the real client, cache, planner and writer.

A run of the unit tests plays few; `make fuzz` a hundred thousand objects. What is claimed of every pass of a
workload in the attacker's namespace: each request goes to that namespace or to the few things of the whole
cluster that a pass looks at, there are not too many, it takes less than a second of CPU and 100 MB, it ends
without an exception, and the log holds nothing that was planted.
"""

import asyncio
import logging
import os
import re
import resource
import time
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.attacker import (
    EVIL,
    KINDS,
    SETTINGS,
    VICTIM,
    Attacked,
    Recording,
    fill,
    forged,
    in_namespace,
    nodes,
    recorded,
)
from kube.raw import Raw
from splitter.assembly import renderer_of
from splitter.core.names import Key
from splitter.kube.client import ApiError, Client
from splitter.render.bounded import BoundedRenderer

PASSES = settings(
    phases=(Phase.explicit, Phase.generate),  # one pass is slow: what fails is shown as it was drawn
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "25")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# Of the whole cluster, by exact form: a node and a volume by name, and the policy that places pods.
_ALLOWED = re.compile(
    rf"""/(api|apis/[a-z0-9.]+)/v[0-9a-z]+/namespaces/{EVIL}/[a-z]+(/[a-z0-9.-]+(/[a-z]+)?)?
    |/api/v1/(nodes|persistentvolumes)/[a-z0-9.-]+
    |/apis/admissionregistration\.k8s\.io/v1/mutatingadmissionpolic(ies|ybindings)/splitter-placement""",
    re.VERBOSE,
)
# A pass may look around, rehearse and write: the twins, the source, its ReplicaSets, the Split.
MOST_REQUESTS = 60
MOST_CPU_S, MOST_BYTES = 1.0, 100 * 1024**2
PLANTED = "hunter2-planted"


class Lab:
    """One loop, one server and one client for all examples."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = Recording()
        self._context = recorded(self.server)
        self.client: Client = self.loop.run_until_complete(self._context.__aenter__())
        self.renderer = BoundedRenderer(renderer_of(SETTINGS))

    def close(self) -> None:
        """End the server, and the process that renders what is large."""
        self.renderer.close()
        self.loop.run_until_complete(self._context.__aexit__(None, None, None))
        self.loop.close()

    def attacked(self) -> Attacked:
        """Return splitter before an empty server."""
        self.server.objects.clear()
        self.server.lists.clear()
        found = Attacked(self.client, self.server, self.renderer)
        for raw in nodes():
            found.cache.nodes.upsert(raw)
        return found

    def passed(self, attacked: Attacked, key: Key) -> list[tuple[str, str]]:
        """Do one pass; return what was asked meanwhile. Claims its CPU and memory."""
        self.server.asked.clear()
        self.server.bodies.clear()
        began_s, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            self.loop.run_until_complete(attacked.reconciler._pass(key))  # noqa: SLF001 (what a worker does)
        except ApiError as error:
            # Refused by the server, and shown where people look; what is wrong with an object is a reason.
            assert error.status != 0, error  # noqa: PT017 (any other error is fine)
        took_s = time.process_time() - began_s
        took_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        assert took_s < MOST_CPU_S, f"{took_s:.2f} s of CPU"
        assert took_bytes < MOST_BYTES, f"{took_bytes} bytes"
        return list(self.server.asked)


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """Yield the lab."""
    found = Lab()
    yield found
    found.close()


def check(key: Key, asked: list[tuple[str, str]]) -> None:
    """Claim that a pass of the attacker's asked for nothing of anybody else's."""
    outside = [one for one in asked if _ALLOWED.fullmatch(one[1].partition("?")[0]) is None]
    assert not outside, f"{key}: {outside}"
    written = [one for one in asked if one[0] != "GET" and f"/namespaces/{EVIL}/" not in one[1]]
    assert not written, f"{key}: {written}"
    assert len(asked) <= MOST_REQUESTS, f"{key}: {len(asked)} requests"


@pytest.mark.parametrize("kind", KINDS)
@PASSES
@given(data=st.data())
def test_no_request_leaves_the_namespace(
    kind: str, data: st.DataObject, lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    """Some objects are forged, the others honest or not there; every workload there is passed twice."""
    attacked = lab.attacked()
    fill(attacked, VICTIM)
    victims = {key for key in attacked.woken if key.namespace == VICTIM}
    attacked.woken.clear()
    also = data.draw(st.sets(st.sampled_from(sorted(KINDS)), max_size=4))
    honest = data.draw(st.booleans())
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="splitter"):
        if honest:
            fill(attacked, EVIL)
        for one in sorted({kind, *also}):
            raw = data.draw(forged(one))
            raw["metadata"]["resourceVersion"] = "2"
            attacked.put(one, raw)
        strangers = {key for key in attacked.woken if key.namespace != EVIL}
        assert not strangers, f"woken by what {EVIL} has written: {strangers}"
        for key in [key for key in attacked.woken if key.namespace == EVIL] * 2:
            check(key, lab.passed(attacked, key))
    assert "this is a bug" not in caplog.text
    assert victims


def _terms(raw: Raw, count: int) -> None:
    term = {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    required = {"nodeSelectorTerms": [term] * count}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    raw["spec"]["template"]["spec"]["affinity"] = affinity


def _containers(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["containers"] = [
        {"name": f"c-{number}", "image": "web:1", "resources": {"requests": {"cpu": "1m"}}}
        for number in range(count)
    ]


def _claims(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["volumes"] = [
        {"name": f"v-{number}", "persistentVolumeClaim": {"claimName": f"c-{number}"}}
        for number in range(count)
    ]


def _annotation(raw: Raw, count: int) -> None:
    raw["metadata"]["annotations"]["splitter.io/spot-percent"] = "9" * count


def _labels(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["metadata"]["labels"] |= {f"l-{number}": "x" * 60 for number in range(count)}


def _env(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "E", "value": "x" * count}]


def _tolerations(raw: Raw, count: int) -> None:
    raw["spec"]["template"]["spec"]["tolerations"] = [{"key": f"k-{number}"} for number in range(count)]


def _replicas(raw: Raw, count: int) -> None:
    raw["spec"]["replicas"] = count


# As large as the API server takes them, which is some 1.5 MiB an object.
LARGE = [
    ("free-deployment", _terms, 25_000),
    ("free-deployment", _containers, 15_000),
    ("free-deployment", _claims, 12_000),
    ("free-deployment", _annotation, 250_000),
    ("free-deployment", _labels, 15_000),
    ("free-deployment", _env, 1_400_000),
    ("free-deployment", _tolerations, 60_000),
    ("free-deployment", _replicas, 2**31 - 1),
    ("free-statefulset", _replicas, 3_000),
    ("free-statefulset", _replicas, 2**31 - 1),
    ("free-statefulset", _terms, 25_000),
    ("free-statefulset", _claims, 12_000),
    ("twin", _env, 1_400_000),
    ("twin", _containers, 15_000),
    ("replicaset", _labels, 15_000),
    # Just within the limit, where all the work is done.
    ("free-deployment", _terms, 600),
    ("free-deployment", _containers, 5_500),
    ("free-deployment", _tolerations, 20_000),
    ("free-deployment", _env, 500_000),
]


@pytest.mark.parametrize(("kind", "grow", "count"), LARGE)
def test_what_is_large_costs_little(
    kind: str, grow: Callable[[Raw, int], None], count: int, lab: Lab
) -> None:
    """It is refused, or done, within the bounds of any pass; reading it is bounded by the same."""
    attacked = lab.attacked()
    raw = in_namespace(EVIL, KINDS[kind][0]())
    grow(raw, count)
    began_s = time.process_time()
    attacked.put(kind, raw)
    assert time.process_time() - began_s < MOST_CPU_S
    for key in list(attacked.woken) * 2:
        check(key, lab.passed(attacked, key))
    raw["metadata"]["labels"] = {}
    attacked.cache.sources.remove(raw)
