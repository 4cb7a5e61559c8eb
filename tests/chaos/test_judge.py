"""Recordings made by hand, and what the judge says of them."""

from collections.abc import Sequence

import pytest

from lab.chaos.judge import Sent, Taken, Terms, Verdict, judge
from lab.sandbox.instants import Instant
from lab.sandbox.recording import NodeChange, NodeSeen, PodChange, PodSeen, Recording

TERMS = Terms("shop", least=3, most=3, surge=1, unavailable=0)
START = Instant(100.0, 0.0)


def pod(name: str, node: str = "spot-0", *, ready: bool = True, terminating: bool = False) -> PodSeen:
    """Return a pod whose uid is its name."""
    return PodSeen("shop", name, name, node=node, ready=ready, terminating=terminating, phase="Running")


def judged(
    *changes: PodSeen | NodeSeen,
    taken: Taken | None = None,
    terms: Terms = TERMS,
    writes: Sequence[Sent] = (),
) -> Verdict:
    """Judge three pods on two nodes, to which this happens second by second; a node that is told goes."""
    there = [NodeChange(START, NodeSeen(name, name)) for name in ("spot-0", "on-demand-0")]
    pods = [PodChange(START, pod(name, node)) for name, node in (("a", "spot-0"), ("b", "spot-0"))]
    pods.append(PodChange(START, pod("c", "on-demand-0")))
    later: list[PodChange | NodeChange] = []
    for second, what in enumerate(changes, 1):
        at = Instant(START.monotonic_s + second, 0.0)
        gone = NodeChange(at, what, deleted=True) if isinstance(what, NodeSeen) else PodChange(at, what)
        later.append(gone)
    recording = Recording(START, Instant(200.0, 0.0), (*there, *pods, *later))
    return judge(terms, recording, taken or Taken(), START, writes)


def sent(second: float, name: str = "web-spot", namespace: str = "shop") -> Sent:
    """Return a write of so many seconds after the start."""
    return Sent(Instant(START.monotonic_s + second, 0.0), namespace, name)


NODE_GOES = NodeSeen("spot-0", "spot-0")


class TestFloor:
    def test_nothing_happens(self) -> None:
        """Three that serve are three."""
        verdict = judged()
        assert (verdict.lowest, verdict.highest, verdict.faults) == (3, 3, ())

    def test_a_write_takes_one(self) -> None:
        """A pod that is ended although no machine went is a broken promise."""
        verdict = judged(pod("a", terminating=True))
        assert verdict.faults == ("floor: 2 served at 1.00 s, 3 were promised and 0 excused",)

    def test_where_one_may_be_missing(self) -> None:
        """Without surge, maxUnavailable is allowed and no more."""
        terms = Terms("shop", least=3, most=3, surge=0, unavailable=1)
        assert judged(pod("a", terminating=True), terms=terms).faults == ()
        assert judged(pod("a", terminating=True), pod("b", terminating=True), terms=terms).faults

    def test_a_machine_goes(self) -> None:
        """What went with a machine is excused, as many as there were."""
        verdict = judged(NODE_GOES)
        assert (verdict.lowest, verdict.excused, verdict.faults) == (1, 2, ())

    def test_a_write_after_a_loss(self) -> None:
        """What a loss has left may not be lowered by a write."""
        verdict = judged(NODE_GOES, pod("c", "on-demand-0", terminating=True))
        assert verdict.faults == ("floor: 0 served at 2.00 s, 3 were promised and 2 excused",)

    def test_what_was_made_good_is_not_excused_again(self) -> None:
        """A replacement that became ready counts: losing it to a write is a broken promise."""
        verdict = judged(NODE_GOES, pod("d", "on-demand-0"), pod("d", "on-demand-0", terminating=True))
        assert verdict.faults == ("floor: 1 served at 3.00 s, 3 were promised and 1 excused",)

    @pytest.mark.parametrize("seen", [pod("a", terminating=True), pod("a", ready=False)])
    def test_a_hand_takes_one(self, seen: PodSeen) -> None:
        """A pod that a hand deleted, or whose kubelet calls it not ready, is the world's doing."""
        assert judged(seen, taken=Taken(pods={"a"})).faults == ()


class TestUnaware:
    """A fourth pod comes at 1 s, a hand takes one at 2 s, what a write ends is seen at 3 s."""

    @staticmethod
    def judged(*writes: Sent, hands: str = "b") -> Verdict:
        """Judge that; `hands`: what the hand takes."""
        taken = [pod(name, terminating=True) for name in hands]
        after = pod("web-spot-x1", terminating=True)
        return judged(pod("web-spot-x1"), *taken, after, taken=Taken(pods=set(hands)), writes=writes)

    @pytest.mark.parametrize("name", ["web-spot", "web-spot-x1"])
    def test_sent_before_the_loss(self, name: str) -> None:
        """A write that was under way when a hand took one could not know of it."""
        assert self.judged(sent(1.5, name)).faults == ()

    @pytest.mark.parametrize(
        "writes",
        [
            (),
            (sent(2.5),),
            (sent(1.5), sent(2.5)),
            (sent(1.5, "web-on-demand"),),
            (sent(1.5, "web-s"),),
            (sent(1.5, namespace="other"),),
            (sent(3.5),),
        ],
    )
    def test_not_sent_before(self, writes: tuple[Sent, ...]) -> None:
        """Whatever was sent after it, or to something else, explains nothing."""
        assert self.judged(*writes).faults == ("floor: 2 served at 3.00 s, 3 were promised and 0 excused",)

    def test_no_more_than_the_loss_took_above_the_floor(self) -> None:
        """One write that did not know excuses one pod, and not a second that goes with it."""
        gone = [pod(name, terminating=True) for name in ("b", "web-spot-x1", "a")]
        verdict = judged(pod("web-spot-x1"), *gone, taken=Taken(pods={"b"}), writes=[sent(1.5)])
        assert verdict.faults == ("floor: 1 served at 4.00 s, 3 were promised and 1 excused",)

    def test_beside_what_went_below_the_floor(self) -> None:
        """A hand that takes two excuses both, whether the write is seen before or after."""
        assert self.judged(sent(1.5), hands="bc").faults == ()


class TestQuorum:
    """Members that are moved by eviction: one at a time in calm, and never half of them."""

    TERMS = Terms("shop", least=3, most=3, surge=0, unavailable=0, quorum=True)

    def test_in_calm(self) -> None:
        """What is promised is promised."""
        assert judged(pod("a", terminating=True), terms=self.TERMS).faults

    def test_while_machines_go(self) -> None:
        """Two of three are a quorum, one is none."""
        taken = Taken(emergency=True)
        gone = [pod(name, terminating=True) for name in "ab"]
        assert judged(*gone[:1], terms=self.TERMS, taken=taken).faults == ()
        assert judged(*gone, terms=self.TERMS, taken=taken).faults


class TestBound:
    def test_one_more_than_the_surge(self) -> None:
        """N + S is fine, one more is not."""
        assert judged(pod("d")).faults == ()
        faults = judged(pod("d"), pod("e", ready=False)).faults
        assert faults == ("bound: 5 replicas at 2.00 s, at most 4 were promised and 0 were starting",)

    def test_beside_a_machine_that_goes(self) -> None:
        """What stands on a machine that goes is not counted, and what was starting is excused."""
        taken = Taken(nodes={"spot-0"}, emergency=True)
        more = [pod(name, "on-demand-0") for name in "defg"]
        assert judged(*more[:3], taken=taken).faults == ()
        assert judged(*more, taken=taken).faults
        assert judged(pod("s", "", ready=False), *more[:3], taken=taken).faults == ()
