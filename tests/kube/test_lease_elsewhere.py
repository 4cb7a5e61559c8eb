"""Whether somebody leads is told by two looks at the Lease, and by no clock of the holder's."""

import pytest

from kube.server import Answer, Script, connected, json, refusal
from splitter.kube.lease import leading_elsewhere

DURATION_S = 0.06  # no Lease is so short; the looks are a twelfth of it apart


def lease(renewed: str, holder: str = "pod_1") -> Answer:
    """Answer with a Lease."""
    return json(
        {"spec": {"holderIdentity": holder, "leaseDurationSeconds": DURATION_S, "renewTime": renewed}}
    )


class TestLeader:
    async def test_renews(self) -> None:
        """Who renews between two looks leads, whatever time it writes."""
        script = Script().then(lease("1999-01-01T00:00:00.000000Z"), lease("1999-01-01T00:00:02.000000Z"))
        async with connected(script) as client:
            assert await leading_elsewhere(client, "splitter-system") == "pod_1"
        path = "/apis/coordination.k8s.io/v1/namespaces/splitter-system/leases/splitter"
        assert {asked.path for asked in script.asked} == {path}

    async def test_is_dead(self) -> None:
        """A holder that does not renew for the whole duration does not lead."""
        script = Script().then(lease("2999-01-01T00:00:00.000000Z"))
        async with connected(script) as client:
            assert await leading_elsewhere(client, "splitter-system") is None
        assert len(script.asked) == 12

    @pytest.mark.parametrize(
        "answer",
        [
            lease("x", holder=""),
            refusal(404, "NotFound", "no lease"),
            refusal(403, "Forbidden", "you may not"),
        ],
    )
    async def test_nobody(self, answer: Answer) -> None:
        """A Lease that is free, not there or not to be read is nobody's, at once."""
        script = Script().then(answer)
        async with connected(script) as client:
            assert await leading_elsewhere(client, "splitter-system") is None
        assert len(script.asked) == 1
