"""What `splitter explain` says of a Split."""

from typing import Any

import pytest

from plugin.cli.one_split import condition, lines_of, split


class TestTheExplanation:
    """The whole story of one workload."""

    def test_is_told_from_what_is_to_why(self) -> None:
        """State, counts, policy with its levels, what is wrong, what was decided."""
        assert lines_of(split()) == [
            "shop/web  Moving  SpotInterrupted",
            "  scale on-demand 4 -> 7 (+3): 3 of 6 spot replicas are on doomed nodes",
            "",
            "Replicas",
            "  all        7 ready of 10 wanted",
            "  on-demand  4 ready of 4 wanted, 7 asked for now, 1 pending, 3 cover for spot",
            "  spot       3 ready of 6 wanted, 3 doomed",
            "",
            "Nodes that go (UTC)",
            "  spot-a: 3 replicas, by 2026-11-21 14:12:00: event SpotInterrupted",
            "  spot-b: 1 replica, going: cordoned (spec.unschedulable)",
            "  spot-c: 2 replicas, gone: condition Ready=Unknown",
            "",
            "Policy in force",
            "  on-demand-base  2      on the workload",
            "  spot-percent    80     on the Namespace",
            "  soak            600s   default",
            "  freeze          false  -",
            "",
            "Spot",
            "  lost last at 2026-11-21 14:10:00, and not made good yet",
            "  flapping: replicas are trusted after 1200 s instead of the policy's soak",
            "",
            "Not as it should be",
            "  Ready is False since 2026-11-21 14:10:00: SpotInterrupted",
            "    7 of 10 replicas are available",
            "    -> Nothing; this is what splitter is for.",
            "  SpotAvailable is False since 2026-11-21 14:10:00: SpotInterrupted",
            "    3 of 6 wanted spot replicas are available",
            "    -> Nothing; this is what splitter is for.",
            "",
            "Last decisions (UTC, newest last)",
            "  2026-11-21 14:00:00  Balanced: 4 on on-demand and 6 on spot",
            "  2026-11-21 14:09:00  WriteDenied, 2 times, last at 2026-11-21 14:09:30: no",
        ]

    def test_leaves_out_what_is_as_it_should_be(self) -> None:
        """No loss, no fault, no decision: no such section."""
        calm = split(conditions=[condition("Eligible", "True")], nodes=[], memory={}, decisions=[])
        assert [line for line in lines_of(calm) if line and not line.startswith(" ")] == [
            "shop/web  Moving  SpotInterrupted",
            "Replicas",
            "Policy in force",
        ]

    def test_tells_the_starts_and_what_a_loss_leaves(self) -> None:
        """By pool, and the gap where a start outlasts the notice."""
        starts = {
            "until": "2026-11-21T14:00:00Z",
            "noticeSeconds": 120,
            "onDemand": {"startSeconds": [280, 300, 290], "nodeSeconds": [0, 90, 60]},
            "spot": {"startSeconds": [31]},
        }
        lines = lines_of(split(memory={"starts": starts}))
        at = lines.index("Starts")
        assert lines[at + 1 : at + 6] == [
            "  on-demand  half of the last 3 within 290 s, all within 300 s; a node took 60 to 90 s",
            "  spot       half of the last 1 within 31 s, all within 31 s",
            "  ! pods need 360 s, the notice is 120 s: a loss of all spot leaves 4 of 10 for",
            "    240 s; splitter.io/on-demand-base 6 would leave 6 (NoticeTooShort)",
            "",
        ]

    def test_says_how_hot_nodes_are_relieved(self) -> None:
        """What is hot, and each move that still counts."""
        move = {
            "time": "2026-11-21T14:00:00Z",
            "pool": "spot",
            "pod": "web-spot-1",
            "podUid": "uid-1",
            "node": "node-1",
            "nodeUid": "uid-node-1",
        }
        relief = {
            "reason": "NodesMeasured",
            "message": "its replicas stand on hot nodes (node-1)",
            "hotNodes": ["node-1"],
            "moves": [
                {**move, "ended": "2026-11-21T14:01:00Z"},
                {**move, "ended": "2026-11-21T14:01:00Z", "takenBack": True},
                move,
            ],
        }
        lines = lines_of(split(relief=relief))
        at = lines.index("Relief")
        assert lines[at + 1 : at + 6] == [
            "  its replicas stand on hot nodes (node-1) (NodesMeasured)",
            "  2026-11-21 14:00:00  web-spot-1 on node-1: moved",
            "  2026-11-21 14:00:00  web-spot-1 on node-1: taken back",
            "  2026-11-21 14:00:00  web-spot-1 on node-1: is being moved",
            "",
        ]
        assert "Relief" not in lines_of(split())

    def test_says_when_the_last_good_policy_is_in_force(self) -> None:
        """What is written now cannot be read."""
        bad = split(policyFrom={"onDemandBase": "LastGood"}, conditions=[condition("PolicyValid", "False")])
        lines = lines_of(bad)
        assert "  on-demand-base  2      last good annotation" in lines
        assert "  PolicyValid is False since 2026-11-21 14:10:00: SpotInterrupted" in lines

    def test_says_what_to_do(self) -> None:
        """The remedy of the reference beside what is not as it should be."""
        image = {**condition("PodsHealthy", "False", "1 replica"), "reason": "ImagePullFailed"}
        assert lines_of(split(conditions=[image]))[-7:-3] == [
            "  PodsHealthy is False since 2026-11-21 14:10:00: ImagePullFailed",
            "    1 replica",
            "    -> Correct the image, or the pull secret.",
            "",
        ]

    def test_wraps_long_sentences(self) -> None:
        """80 columns, indented; a long word stays whole, to be copied."""
        word = "x" * 90
        lines = lines_of(split(message=f"{'word ' * 40}{word}"))
        assert f"  {word}" in lines
        assert max(len(line) for line in lines if word not in line) <= 80

    def test_of_a_split_without_a_report_says_so(self) -> None:
        """A Split just created."""
        assert lines_of({"metadata": {"name": "web", "namespace": "shop"}}) == [
            "shop/web: nothing is reported yet; is the controller running?"
        ]

    @pytest.mark.parametrize(
        "broken",
        [
            {"conditions": None},
            {"decisions": None},
            {"memory": "x"},
            {"memory": {"rebalance": "x"}},
            {"spot": None},
        ],
    )
    def test_survives_a_broken_status(self, broken: dict[str, Any]) -> None:
        """Anyone may have edited it."""
        assert lines_of(split(**broken))[0] == "shop/web  Moving  SpotInterrupted"
