"""A split StatefulSet: stories that people can read, and random lives in which the promises hold.

A seed that fails is a story: `Life(seed).run()` plays it again. The golden files
are written anew with `SPLITTER_REGENERATE=1 pytest tests/stories`. `make lives` plays 2,000 lives.
"""

import os
from pathlib import Path

import pytest

from splitter.core import floor_gate
from splitter.core.twins import replica_moves
from stories.members import Members, split
from stories.members_lives import Life
from stories.reported import BrokenPromiseError

FOLDER = Path(__file__).parent
FIRST, END = map(int, os.environ.get("SPLITTER_WORLD_LIVES", "0:20").split(":"))
BATCH = 5


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, END, BATCH))
def test_the_promises_hold(first: int) -> None:
    """No write breaks a promise, whoever acts when, and everything comes to rest."""
    for seed in range(first, min(first + BATCH, END)):
        Life(seed).run().close()


def test_a_step_without_a_floor_takes_nothing_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate counts again what the step forgot to count."""
    monkeypatch.setattr(replica_moves, "floor_of", lambda *_: 0)
    Life(0).run().close()


def test_a_life_sees_a_write_below_the_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaking before making is found out by the first take-over, if neither step nor gate counts."""
    monkeypatch.setattr(replica_moves, "floor_of", lambda *_: 0)
    monkeypatch.setattr(floor_gate, "floor_of", lambda *_: 0)
    story = Members("No floor")
    story.label()
    story.wait(60)
    with pytest.raises(BrokenPromiseError, match="promise 1"):
        story.close()


def keep(story: Members, name: str) -> None:
    """Compare a story with its golden file, or write that anew."""
    path = FOLDER / f"{name}.golden"
    text = "\n".join(story.lines) + "\n"
    if os.environ.get("SPLITTER_REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), "no golden file yet: run with SPLITTER_REGENERATE=1"
    assert text == path.read_text(encoding="utf-8")


class TestTakingOverAndGivingBack:
    @pytest.mark.parametrize("ordered", [False, True], ids=["parallel", "ordered"])
    def test_there_and_back(self, ordered: bool) -> None:
        """5 members become 3 + 2 and 5 again: never fewer than 5 ready, never more than 6."""
        kind = "OrderedReady" if ordered else "Parallel"
        story = Members(f"Taking over 5 members and giving them back, {kind}", 5, ordered=ordered)
        story.label()
        story.wait(120)
        assert not story.unrest()
        assert story.scene.source["spec"]["replicas"] == 0
        story.unlabel()
        story.wait(180)
        assert not story.unrest()
        assert story.scene.source["spec"]["replicas"] == 5
        assert (story.least, story.most) == (5, 6)
        keep(story, f"quorum-there-and-back-{'ordered' if ordered else 'parallel'}")

    def test_one_member(self) -> None:
        """A single member stays on on-demand, and is never missing."""
        story = Members("Taking over a single member", 1)
        story.label()
        story.wait(60)
        assert not story.unrest()
        assert story.ready() == {"on-demand": 1}
        assert (story.least, story.most) == (1, 2)
        keep(story, "quorum-one-member")


class TestForeignWrites:
    def test_a_new_count(self) -> None:
        """`kubectl scale` on the source is understood; what it has begun to start goes again."""
        story = split("Somebody scales the source from 5 to 7")
        story.scale(7)
        story.wait(60)
        assert not story.unrest()
        assert story.ready() == {"on-demand": 4, "spot": 3}
        assert story.least >= 5
        keep(story, "quorum-scaled")

    def test_a_smaller_count_keeps_a_majority_on_the_way(self) -> None:
        """From 9 to 3: spot goes first, so that at no moment half of the members are on spot."""
        story = split("Somebody scales the Split from 9 to 3", 9)
        story.scale_split(3)
        story.wait(300)
        assert not story.unrest()
        assert story.ready() == {"on-demand": 2, "spot": 1}
        assert story.least_majority > 0
        keep(story, "quorum-scaled-down")

    def test_git_is_given_way_to(self) -> None:
        """The third time that the saved count is set again, its writer is named and the source given back."""
        story = split("Argo CD sets the replicas back, again and again")
        for _ in range(3):
            story.set_back("argocd-controller")
            story.wait(30)
        story.wait(180)
        assert story.state() == ("Conflict", "Conflict")
        assert "with argocd-controller" in story.message()
        assert story.ready() == {"source": 5}
        assert story.least >= 5
        keep(story, "quorum-conflict")

    def test_new_counts_are_no_write_conflict(self) -> None:
        """An impatient user who scales to 4, 6 and 5 within a minute is followed each time."""
        story = split("Somebody scales the source three times within a minute")
        for count in (4, 6, 5):
            story.scale(count)
            story.wait(20)
        story.wait(120)
        assert not story.unrest()
        assert story.state()[0] == "Steady"


class TestALostCount:
    @pytest.mark.parametrize("back", [False, True], ids=["on the way there", "on the way back"])
    def test_in_the_middle_of_a_move(self, back: bool) -> None:
        """Somebody takes the annotations off while the source stands at 2: nobody has asked for 2 members."""
        story = split("The annotations are removed") if back else Members("The annotations are removed", 5)
        (story.unlabel if back else story.label)()
        while story.scene.source["spec"]["replicas"] != 2:
            story.wait(1)
        story.unannotate()
        story.wait(600)
        assert story.scene.replicas == 5
        assert not story.unrest()
        assert story.least >= 5


class TestABrokenRoll:
    @pytest.mark.parametrize("replicas", [2, 5])
    def test_is_taken_back_on_the_way_home(self, replicas: int) -> None:
        """The member that does not come up stands where the source's first one would, and is never given."""
        story = split("The label is removed while a broken image is rolled", replicas)
        story.set_image("db:2-broken")
        story.wait(120)
        least = story.least
        story.unlabel()
        story.set_image("db:3")
        story.wait(900)
        assert not story.unrest()
        assert story.least >= least
        assert story.scene.images() == {"db:3"}
        assert sum("template of db:1" in line for line in story.lines) == 1

    @pytest.mark.parametrize("ordinal", [0, 1, 2])
    def test_a_member_that_crashes_keeps_nobody_from_home(self, ordinal: int) -> None:
        """Below those that serve it is given last, and would stand in the room of the source's second one."""
        story = split("The label is removed while a member of on-demand crashes")
        story.crash(ordinal)
        story.wait(60)
        story.unlabel()
        story.wait(900)
        assert not story.unrest()
        assert (story.least, story.most) == (4, 7 if ordinal < 2 else 6)


class TestOutages:
    @pytest.mark.parametrize("notice_s", [0, 30, 120])
    def test_all_spot_vanishes_returns_and_vanishes(self, notice_s: int) -> None:
        """Without notice never under 3 of 5, with notice never under 5; back to 5 within a start and 2 s."""
        story = split(f"All spot nodes go, {notice_s} s after their notice, return, and go again")
        for _ in range(2):
            if notice_s:
                story.notice_spot()
                story.wait(notice_s)
            story.vanish_spot()
            story.wait(7)  # START_S + 2
            assert sum(story.ready().values()) == 5
            story.wait(60)
            story.return_spot()
            story.wait(4 * 3600)
            assert not story.unrest()
        assert story.least >= (5 if notice_s else 3)
        assert not [line for line in story.lines if "~rendered-hash" in line], "nothing was rolled"
        keep(story, f"quorum-outage-{notice_s}s")

    def test_an_image_is_rolled_beside_a_node_that_goes_for_ever(self) -> None:
        """A spot node stays cordoned: the roll is begun once, and its one missing member is not put back."""
        story = split("A spot node stays cordoned, and an image is set")
        story.notice_under(1000)
        story.wait(300)
        story.set_image("db:2")
        story.wait(600)
        assert story.scene.images() == {"db:2"}
        assert sum("template of db:2" in line for line in story.lines) == 2
        assert not [line for line in story.lines if "template of db:1" in line]
        assert story.least >= 4

    def test_even_n(self) -> None:
        """Of 4 members 3 are on on-demand: without spot a quorum of 4 is left."""
        story = split("All spot nodes of 4 members go", 4)
        story.vanish_spot()
        assert story.least >= 3
        story.wait(30)
        assert sum(story.ready().values()) == 4


class TestDeletedNodes:
    """Somebody deletes the Node object of a machine that lives."""

    def test_its_members_are_not_made_twice(self) -> None:
        """They are covered at once, and removed by force no sooner than 40 s later: the judge sees to it."""
        story = split("The Node objects of both spot nodes are deleted")
        story.vanish_spot()
        story.wait(7)
        assert sum(story.ready().values()) == 5
        story.wait(30)
        assert [pod["metadata"]["name"] for pod in story.on_gone_nodes()] == ["db-spot-1000"]
        story.wait(6)
        assert not story.on_gone_nodes()
