"""What a Lease says of the workloads that have held up a process, and for how long it counts."""

from typing import Any

import orjson
import pytest

from builders import NOW, ago
from splitter.core.names import Key
from splitter.kube.client import ApiError, Json
from splitter.kube.held_up import ANNOTATION, MOST, HeldUp, held_up, write_down
from splitter.kube.paths import ResourcePath

WEB, DB = Key("Deployment", "evil", "web"), Key("StatefulSet", "evil", "web")
ENTRY = {"kind": "Deployment", "namespace": "evil", "name": "web", "times": 2, "at": NOW.isoformat()}


def lease(*entries: object, text: str | None = None) -> Json:
    """Return a Lease with this annotation, held by somebody."""
    written = orjson.dumps(entries).decode() if text is None else text
    metadata = {"name": "splitter", "resourceVersion": "7", "annotations": {ANNOTATION: written, "a": "b"}}
    return {"kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": "one"}}


class Leases:
    """An API server with a Lease; so many writes meet one that was renewed meanwhile."""

    def __init__(self, raw: Json, conflicts: int = 0) -> None:
        self.raw = raw
        self.conflicts = conflicts

    async def send(
        self, method: str, path: ResourcePath, body: Json | None = None, *, timeout_s: float | None = None
    ) -> Json:
        """Answer as an API server does."""
        assert str(path).endswith("/namespaces/splitter-system/leases/splitter")
        assert timeout_s is not None
        if method == "GET":
            return self.raw
        assert method == "PUT"
        assert body is not None
        if self.conflicts:
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "the object has been modified")
        self.raw = body
        return body


class TestRead:
    def test_what_is_written(self) -> None:
        """Which workload, how often, and when."""
        assert held_up(lease(ENTRY), NOW) == (HeldUp(WEB, NOW, 2),)

    @pytest.mark.parametrize("raw", [{}, {"metadata": {}}, {"metadata": {"annotations": None}}])
    def test_nothing(self, raw: Json) -> None:
        """A Lease that says nothing, and none."""
        assert held_up(raw, NOW) == ()

    @pytest.mark.parametrize("text", ["", "{", "7", "[7]", "[null]", "[[]]", "[" * 20_000])
    def test_no_json(self, text: str) -> None:
        """What splitter has not written counts for nothing."""
        assert held_up(lease(text=text), NOW) == ()

    @pytest.mark.parametrize(
        "changed",
        [
            {"kind": "Pod"},
            {"name": "../../shop/deployments/web"},
            {"namespace": ""},
            {"times": "2"},
            {"times": True},
            {"at": "yesterday"},
            {"at": 7},
            {"at": ago(25 * 3600).isoformat()},
        ],
    )
    def test_what_is_no_workload(self, changed: dict[str, Any]) -> None:
        """It is left out, and the others are read; so is what was a day ago."""
        other = {**ENTRY, "kind": "StatefulSet"}
        assert held_up(lease({**ENTRY, **changed}, other), NOW) == (HeldUp(DB, NOW, 2),)

    def test_bounds(self) -> None:
        """There are no more than a few, and no more times than are counted."""
        many = [{**ENTRY, "name": f"web-{number}", "times": 10**9} for number in range(MOST + 5)]
        read = held_up(lease(*many), NOW)
        assert (len(read), {one.times for one in read}) == (MOST, {10})


@pytest.mark.parametrize(
    ("times", "ago_s", "rest_s"),
    [(1, 0, 60), (1, 20, 40), (1, 61, 0), (2, 0, 120), (7, 0, 3600), (10, 0, 3600), (1, -500, 60)],
)
def test_rest(times: int, ago_s: float, rest_s: float) -> None:
    """A minute, twice as long after each further time, an hour at most, whatever the clocks say."""
    assert HeldUp(WEB, ago(ago_s), times).rest_s(NOW) == pytest.approx(rest_s)


class TestWriteDown:
    async def test_the_first_time(self) -> None:
        """The Lease stays as it is otherwise, and keeps its version: whoever renewed it meanwhile wins."""
        server = Leases(lease(ENTRY))
        server.raw["metadata"]["annotations"].pop(ANNOTATION)
        written = await write_down(server, "splitter-system", DB)
        assert (written.key, written.times) == (DB, 1)
        assert server.raw["spec"] == {"holderIdentity": "one"}
        assert server.raw["metadata"]["resourceVersion"] == "7"
        assert server.raw["metadata"]["annotations"]["a"] == "b"
        assert held_up(server.raw, written.at) == (written,)

    async def test_again(self) -> None:
        """It is counted; others stay, and the oldest goes where there are too many."""
        server = Leases(lease(ENTRY))  # months ago
        for number in (*range(MOST), 0, MOST):
            last = await write_down(server, "splitter-system", Key("Deployment", "evil", f"web-{number}"))
        read = [(one.key.name, one.times) for one in held_up(server.raw, last.at)]
        assert read[:3] == [(f"web-{MOST}", 1), ("web-0", 2), (f"web-{MOST - 1}", 1)]
        assert (len(read), read[-1]) == (MOST, ("web-2", 1))

    @pytest.mark.parametrize(("conflicts", "arrives"), [(2, True), (3, False)])
    async def test_renewed_in_between(self, conflicts: int, arrives: bool) -> None:
        """It is read again, and written."""
        server = Leases(lease(), conflicts)
        if arrives:
            assert (await write_down(server, "splitter-system", WEB)).times == 1
            return
        with pytest.raises(ApiError):
            await write_down(server, "splitter-system", WEB)
