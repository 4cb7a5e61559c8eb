"""The stories: each plays a workload's life with the promises checked at every step, and is kept as text.

A golden file is read by people: a changed line is a changed behaviour, to be judged, not to be waved
through. `SPLITTER_REGENERATE=1 pytest tests/stories` writes them anew.
"""

import os
from pathlib import Path
from typing import Any

import pytest

from splitter.core.replica import Pool
from stories.director import Story
from stories.words import images
from world.controllers.kubelet import Timing

FOLDER = Path(__file__).parent
POLICY = {"on_demand_base": "2", "spot_percent": "80"}


def keep(story: Story, name: str) -> None:
    """Compare a story with its golden file, or write that anew."""
    path = FOLDER / f"{name}.golden"
    text = "\n".join(story.lines) + "\n"
    if os.environ.get("SPLITTER_REGENERATE"):
        path.write_text(text, encoding="utf-8")
    assert path.exists(), "no golden file yet: run with SPLITTER_REGENERATE=1"
    assert text == path.read_text(encoding="utf-8")


def split(title: str, replicas: int = 10, surge: int = 3, unavailable: int = 2, **world: Any) -> Story:  # noqa: ANN401 (what a story takes)
    """Return a story of a workload that is already split, told from there on."""
    story = Story(title, replicas, surge, unavailable, **world)
    story.label(**POLICY)
    story.wait(600)
    del story.lines[3:]
    story.lines.append(f"{story.clock}  split since long: {story.counts()}")
    return story


def revisions(story: Story) -> set[str]:
    """Return the images that the source could be rolled back to."""
    return {images(rs["spec"]) for rs in story.scene.replica_sets(story.scene.source)}


class TestTakingOver:
    """A label is all it takes, and nobody notices."""

    def test_with_surge(self) -> None:
        """Pods that stand where they may stay keep running: not one more, not one fewer."""
        story = Story("Taking over: 4 on on-demand, 6 on spot")
        before = story.pods()
        story.label(**POLICY)
        story.wait(120)
        assert not story.unsettled(on_demand=4)
        assert story.pods() == before
        assert story.judge.least_available == story.judge.most_placed == 10
        keep(story, "take-over")

    def test_without_surge(self) -> None:
        """With maxSurge 0 there is nothing to go down for, while all pods may stay."""
        story = Story("Taking over with maxSurge 0", surge=0)
        before = story.pods()
        story.label(**POLICY)
        story.wait(120)
        assert not story.unsettled(on_demand=4)
        assert story.pods() == before
        assert story.judge.least_available == story.judge.most_placed == 10
        keep(story, "take-over-without-surge")

    def test_one_replica(self) -> None:
        """A single replica is replaced by one on spot that is ready before."""
        story = Story("Taking over a single replica", 1, 1, 0, spot_nodes=0)
        story.add_spot("spot-a")
        story.label()
        story.wait(120)
        assert not story.unsettled(on_demand=0)
        story.unlabel()
        story.wait(60)
        assert not story.traces()
        assert story.judge.least_available == 1
        keep(story, "one-replica")

    def test_no_replica(self) -> None:
        """Zero replicas are taken over, scaled up, down, and given back."""
        story = Story("Taking over zero replicas", 0, 1, 0)
        story.label(**POLICY)
        story.wait(30)
        assert not story.unsettled(on_demand=0)
        story.scale(4)
        story.wait(60)
        assert not story.unsettled(on_demand=2)
        story.scale(0)
        story.wait(30)
        story.unlabel()
        story.wait(30)
        assert not story.traces()
        keep(story, "no-replica")

    @pytest.mark.parametrize(("start_s", "notice_s"), [(20, 0), (40, 30), (20, 120)])
    def test_while_spot_goes(self, start_s: int, notice_s: int) -> None:
        """What is lost in the middle is covered at once, and the cover stays when the lost pods are gone."""
        title = f"Taking over while all spot nodes go, {notice_s} s after their notice"
        story = Story(title, spot_nodes=2, timing=Timing(ready_s=start_s - 1.0))
        story.label(on_demand_base="2")
        story.wait(2 * start_s + 5)
        if notice_s:
            story.notice("spot-a", "spot-b")
            story.wait(notice_s)
        story.vanish("spot-a", "spot-b")
        story.wait(65)
        assert story.available() == 10
        covered = story.scene.counts()[0]
        assert covered >= 9
        story.add_spot("spot-c", "spot-d")
        story.wait(300)
        assert story.scene.counts()[0] >= covered
        story.wait(3600)
        assert not story.unsettled(on_demand=2)
        keep(story, f"take-over-while-spot-goes-{notice_s}s")

    def test_with_an_old_revision(self) -> None:
        """Old revisions are parked first and come back, so that `kubectl rollout undo` works as before."""
        story = Story("Old revisions are kept for kubectl rollout undo")
        story.set_image("web:2")
        story.wait(120)
        before = revisions(story)
        story.label(**POLICY)
        story.wait(120)
        story.unlabel()
        story.wait(120)
        assert not story.traces()
        assert revisions(story) == before == {"web:1", "web:2"}
        story.set_image("web:1")
        story.wait(120)
        assert not story.traces()
        keep(story, "old-revision")


class TestGivingBack:
    """Without the label, everything is as it was."""

    def test_from_rest(self) -> None:
        """The source has the same pods again, and none of them was restarted."""
        story = split("Giving back from rest")
        before = story.pods()
        story.unlabel()
        story.wait(120)
        assert not story.traces()
        assert story.pods() == before
        assert story.judge.least_available == story.judge.most_placed == 10
        keep(story, "give-back")

    def test_while_spot_is_gone(self) -> None:
        """What covers the loss is handed back like the rest."""
        story = split("Giving back while spot is gone")
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(60)
        story.unlabel()
        story.wait(120)
        assert not story.traces()
        keep(story, "give-back-without-spot")

    def test_in_the_middle_of_taking_over(self) -> None:
        """A change of mind costs nothing."""
        story = Story("Changing one's mind in the middle of taking over")
        story.label(**POLICY)
        story.wait(12)
        story.unlabel()
        story.wait(120)
        assert not story.traces()
        assert story.judge.least_available == 10
        keep(story, "give-back-in-mid-take-over")

    def test_after_an_image_change(self) -> None:
        """Without a ReplicaSet of the current template one is made, and the old one is kept for undo."""
        story = split("Giving back another image than was taken over")
        story.set_image("web:2")
        story.wait(120)
        story.unlabel()
        story.wait(120)
        assert not story.traces()
        assert revisions(story) == {"web:1", "web:2"}
        keep(story, "give-back-another-image")

    def test_another_count_than_was_taken_over(self) -> None:
        """The source goes on as any other: scaled while split, it still rolls after giving back."""
        story = split("Giving back another count than was taken over")
        story.scale(6)
        story.wait(600)
        story.unlabel()
        story.wait(120)
        assert not story.traces()
        story.set_image("web:2")
        story.wait(120)
        assert not story.traces()
        keep(story, "give-back-another-count")


class TestRunning:
    """The source stays the one handle."""

    def test_scaling(self) -> None:
        """`kubectl scale` on the source scales the twins."""
        story = split("Scaling 10 -> 20 -> 4")
        story.scale(20)
        story.wait(60)
        assert not story.unsettled(on_demand=6)
        story.scale(4)
        story.wait(240)
        assert not story.unsettled(on_demand=2)
        keep(story, "scale")

    def test_an_image(self) -> None:
        """A new image rolls through one twin after the other, never below N."""
        story = split("A new image")
        story.set_image("web:2")
        story.wait(240)
        assert not story.unsettled(on_demand=4)
        assert story.judge.least_available == 10
        assert story.judge.most_placed == 13
        keep(story, "image")

    def test_a_broken_image(self) -> None:
        """A broken image stops in the first twin, beside its surge pods; the next one mends it."""
        story = split("A broken image, then a good one")
        story.set_image("web:2-broken")
        story.wait(300)
        story.set_image("web:3")
        story.wait(300)
        assert not story.unsettled(on_demand=4)
        assert story.judge.least_available == 10
        keep(story, "broken-image")

    def test_a_twin_is_deleted(self) -> None:
        """A twin deleted by hand comes back, and nothing else goes with it."""
        story = split("Somebody deletes a twin")
        deleted = lambda: story.objects.delete(story.twin(Pool.SPOT))  # noqa: E731
        story.happens("somebody deletes web-spot", deleted, excused_s=2.0)
        story.wait(3600)
        assert not story.unsettled(on_demand=4)
        keep(story, "twin-deleted")

    @pytest.mark.parametrize("template", ["by-hand", "by-hand-broken"])
    def test_a_twin_is_edited(self, template: str) -> None:
        """What somebody writes over a twin's template is put back, make before break."""
        story = split("Somebody edits the template of a twin")
        story.edit_twins(f"web:{template}", Pool.SPOT)
        story.wait(300)
        assert not story.unsettled(on_demand=4)
        assert story.judge.least_available == 10
        keep(story, f"twin-edited-{template}")

    def test_a_twin_is_edited_again_and_again(self) -> None:
        """Two who each put back what the other writes would have all pods replaced without end."""
        story = split("Somebody edits the template of a twin again and again")
        born = story.scene.names.given
        for _ in range(60):
            spot = story.scene.twins.get(Pool.SPOT)
            if spot is not None and images(spot["spec"]) != "web:by-hand":
                story.edit_twins("web:by-hand", Pool.SPOT)
            story.wait(30)
        assert story.reason() == "Conflict"
        assert "the pod templates of its twins" in story.scene.status["message"]
        assert story.judge.least_available == 10
        assert story.scene.names.given - born < 40
        story.unlabel()
        story.wait(60)
        assert not story.traces()

    def test_images_are_set_by_label(self) -> None:
        """`kubectl set image deploy -l app=web` reaches both twins, too: each image is rolled out once."""
        story = split("Images are set by label, of the source and of both twins")
        for number in range(2, 7):
            born = story.scene.names.given
            story.edit_twins(f"web:{number}", *Pool)
            story.wait(2)
            story.set_image(f"web:{number}")
            story.wait(60)
            assert not story.unsettled(on_demand=4)
            assert story.scene.names.given - born == 12  # 10 pods and 2 ReplicaSets
        said = str(story.scene.status["decisions"])
        assert "Rolling" in said
        assert not [reason for reason in ("Drift", "Conflict") if reason in said]

    def test_one_command_is_one_conflict(self) -> None:
        """Both twins are edited together, and put back one after the other: that counts once, and says so."""
        story = split("Both twins are edited by one command, again and again")
        counts = []
        for _ in range(3):
            story.edit_twins("web:by-hand", *Pool)
            story.wait(120)
            counts.append(str(story.scene.status["writeConflicts"]).count("2026-"))
        assert counts == [1, 2, 3]
        assert story.reason() == "Conflict"
        said = str(story.scene.status["decisions"])
        assert "put back (2 of 3 times within 10 min)" in said
        assert "3 write conflicts within 10 min over the pod templates of its twins: the workload" in said

    def test_bad_annotation(self) -> None:
        """Bad input moves nothing: the last good policy holds."""
        story = split("A bad annotation while split")
        story.annotate(spot_percent="50%")
        story.wait(60)
        assert not story.unsettled(on_demand=4)
        story.annotate(spot_percent="50")
        story.wait(60)
        assert not story.unsettled(on_demand=6)
        keep(story, "bad-annotation")

    def test_dry_run(self) -> None:
        """Dry-run says what would be done and writes nothing but the report."""
        story = Story("Dry-run before taking over")
        story.label(**POLICY, dry_run="true")
        story.wait(60)
        assert not story.scene.twins
        assert not story.scene.source["spec"].get("paused")
        story.unlabel()
        story.wait(10)
        assert not story.traces()
        keep(story, "dry-run")

    def test_freeze(self) -> None:
        """Frozen counts stay, templates do not; thawed, everything follows."""
        story = split("Freeze holds the counts and lets templates through")
        story.annotate(freeze="true")
        story.scale(12)
        story.wait(30)
        assert story.scene.counts() == (4, 6)
        story.set_image("web:2")
        story.wait(120)
        assert [images(twin["spec"]) for twin in story.scene.twins.values()] == ["web:2", "web:2"]
        story.annotate(freeze=None)
        story.wait(240)
        assert not story.unsettled(on_demand=4)
        keep(story, "freeze")


class TestSpot:
    """Spot goes and comes; the service stays."""

    def test_notice_loss_return(self) -> None:
        """All spot nodes are announced to go, go, and come back."""
        story = split("Notice on all spot nodes, loss, return after the soak")
        story.notice("spot-a", "spot-b", "spot-c")
        story.wait(120)
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(180)
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.wait(2400)
        assert not story.unsettled(on_demand=4)
        assert story.judge.least_available >= 4
        keep(story, "notice")

    def test_short_notice(self) -> None:
        """Where a notice is 30 s the doomed have been let go before their machines end."""
        story = split("A notice of 30 s on all spot nodes", provider="gce")
        story.notice("spot-a", "spot-b", "spot-c")
        story.wait(20)
        assert not story.scene.on("spot-")
        assert story.reason() == "SpotInterrupted"  # their machines live
        story.wait(10)
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(60)
        assert story.available() == 10
        keep(story, "short-notice")

    def test_notice_with_a_drain(self) -> None:
        """Whoever gives the notice evicts the pods at once: it is no loss while the machines live."""
        story = split("A notice on all spot nodes, and a drain at once")
        story.notice("spot-a", "spot-b", "spot-c")
        story.evict("spot-a", "spot-b", "spot-c")
        story.wait(5)
        assert story.reason() == "SpotInterrupted"
        story.wait(30)
        assert story.reason() == "SpotInterrupted"
        assert story.available() == 10
        story.vanish("spot-a", "spot-b", "spot-c")
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.wait(30)
        story.vanish("spot-d", "spot-e", "spot-f")
        story.wait(5)
        assert story.reason() == "SpotLost"
        keep(story, "notice-drain")

    def test_scaled_to_0_in_an_outage(self) -> None:
        """What is known of spot before is known after: on-demand takes all at once."""
        story = split("All spot nodes vanish; scaled to 0 for the night, and up while spot is still out")
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(30)
        story.scale(0)
        story.wait(36_000)
        story.scale(10)
        story.wait(15)
        assert story.available() == 10
        assert story.scene.counts()[0] == 10
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.wait(3600)
        assert not story.unsettled(on_demand=4)
        story.scale(0)
        story.wait(600)
        story.scale(10)
        assert story.scene.counts()[0] == 4
        keep(story, "scaled-to-0-in-an-outage")

    def test_a_loss_while_nothing_is_written(self) -> None:
        """Dry-run reports a loss, and remembers it: afterwards it is covered without the grace."""
        story = split("All spot nodes vanish in a dry-run")
        story.annotate(dry_run="true")
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(120)
        assert story.scene.counts()[0] == 4
        story.annotate(dry_run=None)
        assert story.scene.counts()[0] == 10

    def test_notice_on_an_on_demand_node(self) -> None:
        """Its replicas are replaced within on-demand, before it goes, and spot is not distrusted."""
        story = split("Notice on an on-demand node, then its loss")
        story.notice("od-1")
        story.wait(10)
        assert story.available() == 10
        assert story.scene.counts()[0] == 6
        assert any("(OnDemandDoomed)" in line for line in story.lines)
        story.wait(110)
        story.vanish("od-1")
        story.wait(300)
        assert not story.unsettled(on_demand=4)
        assert story.judge.least_available == 8
        keep(story, "on-demand-notice")

    def test_loss_while_writes_fail(self) -> None:
        """The lost pods are collected before the first raise goes through; it comes all the same."""
        story = split("All spot nodes vanish while the API server takes no writes for a minute")
        story.refuse_writes(seconds=65)
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(60)
        assert story.scene.counts()[0] == 4
        story.wait(15)
        assert story.scene.counts()[0] == 10
        story.wait(10)
        assert story.available() == 10
        keep(story, "loss-while-writes-fail")

    def test_loss_without_notice(self) -> None:
        """Nodes that vanish take their pods along; on-demand covers at once."""
        story = split("All spot nodes vanish without notice")
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(300)
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.wait(2400)
        assert not story.unsettled(on_demand=4)
        keep(story, "loss")


class TestTheWorstDay:
    """A broken image is on its way when all spot nodes go: what serves is the last good one."""

    def test_with_notice(self) -> None:
        """Good replicas cover on on-demand before the nodes go; the broken ones are tried again later."""
        story = split("A broken image, then notice on all spot nodes, then a good image", 4, 2, 0)
        story.set_image("web:2-broken")
        story.wait(60)
        story.notice("spot-a", "spot-b", "spot-c")
        story.wait(60)
        assert story.available() == 4
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(120)
        assert story.available() == 4
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.set_image("web:3")
        story.wait(2400)
        assert not story.unsettled(on_demand=2)
        keep(story, "broken-image-notice")

    def test_at_once(self) -> None:
        """Within the time that a pod takes to start N good ones serve."""
        story = split("A broken image, then all spot nodes vanish, then a good image", 4, 2, 0)
        story.set_image("web:2-broken")
        story.wait(60)
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(10)
        assert story.available() == 4
        story.wait(120)
        assert story.available() == 4
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.set_image("web:3")
        story.wait(2400)
        assert not story.unsettled(on_demand=2)
        keep(story, "broken-image-loss")


class TestCreatedAnew:
    """The source is deleted with --cascade=orphan and applied again: the twins and parked ones stay."""

    @pytest.mark.parametrize("moment_s", [12, 600], ids=["mid-take-over", "split"])
    def test_with_its_label(self, moment_s: int) -> None:
        """The new one owns what is left of the old, and stands as that did."""
        story = Story("Created anew with the label, after --cascade=orphan")
        story.label(**POLICY)
        story.wait(moment_s)
        del story.lines[3:]
        story.lines.append(f"{story.clock}  {story.counts()}")
        story.create_anew(labelled=True)
        story.wait(600)
        assert not story.unsettled(on_demand=4)
        owned = [*story.scene.parked(), story.scene.split]
        owners = {raw["metadata"]["ownerReferences"][0]["uid"] for raw in owned if raw is not None}
        assert owners == {story.scene.source["metadata"]["uid"]}
        assert story.judge.least_available == 10
        if moment_s < 600:
            keep(story, "created-anew")

    @pytest.mark.parametrize("moment_s", [12, 600], ids=["mid-take-over", "split"])
    def test_without(self, moment_s: int) -> None:
        """What is left of the old one is drained beside the new one's own pods, and goes."""
        story = Story("Created anew without the label, after --cascade=orphan")
        story.label(**POLICY)
        story.wait(moment_s)
        del story.lines[3:]
        story.lines.append(f"{story.clock}  {story.counts()}")
        story.create_anew(labelled=False)
        story.wait(600)
        assert not story.traces()
        assert story.judge.least_available == 10
        if moment_s < 600:
            keep(story, "created-anew-without-label")


class TestWriteConflicts:
    """Somebody else has an opinion about the pause."""

    def test_unpaused_once(self) -> None:
        """One foreign unpause makes N intruders, which are parked and drained."""
        story = split("Somebody runs kubectl rollout resume once, while splitter is away")
        story.stop()
        story.resume()
        story.start()
        story.wait(120)
        assert not story.unsettled(on_demand=4)
        assert story.judge.least_available == 10
        keep(story, "resumed-once")

    def test_unpaused_three_times(self) -> None:
        """The third within ten minutes is a conflict: everything is given back, and the Split says so."""
        story = split("Somebody runs kubectl rollout resume three times")
        for _ in range(3):
            story.resume()
            story.wait(60)
        story.wait(120)
        assert story.traces() == ["Split"]
        assert story.judge.least_available == 10
        story.unlabel()
        story.wait(10)
        assert not story.traces()
        story.label()
        story.wait(120)
        assert not story.unsettled(on_demand=4)
        keep(story, "conflict")


class TestCauses:
    """Replicas that do not run, not for want of nodes: nothing moves, and the reason is said."""

    def test_an_image_on_scale_out(self) -> None:
        """New replicas that cannot pull their image are not covered: on-demand could not pull it either."""
        story = split("The registry does not answer while web is scaled out")
        story.registry(answers=False)
        story.scale(20)
        story.wait(600)
        assert story.scene.counts() == (6, 14)
        story.registry(answers=True)
        story.wait(60)
        assert not story.unsettled(on_demand=6)
        keep(story, "cause-image")

    def test_an_image_holds_a_return(self) -> None:
        """Spot replicas that come back and do not get ready hold the return, and are named for it."""
        story = split("Spot comes back, and the registry does not answer")
        story.vanish("spot-a", "spot-b", "spot-c")
        story.wait(60)
        story.registry(answers=False)
        story.add_spot("spot-d", "spot-e", "spot-f")
        story.wait(1800)
        assert story.scene.counts()[0] == 10
        story.registry(answers=True)
        story.wait(7200)
        assert not story.unsettled(on_demand=4)
        keep(story, "cause-image-return")

    def test_a_quota_on_scale_out(self) -> None:
        """What the quota refuses is asked for and not covered; a loss is covered at once all the same."""
        story = split("A quota is too small for a scale-out, then spot nodes are lost")
        story.limit_pods(14)
        story.scale(20)
        story.wait(600)
        assert story.scene.counts() == (6, 14)
        story.notice("spot-a")
        story.wait(60)
        assert story.scene.counts()[0] > 6
        story.limit_pods(None)
        story.vanish("spot-a")
        story.add_spot("spot-d")
        story.wait(2400)
        assert not story.unsettled(on_demand=6)
        keep(story, "cause-quota")

    def test_a_quota_without_room_for_surge(self) -> None:
        """Taking over holds: nothing is removed to make room."""
        story = Story("A quota leaves no room to take over")
        story.limit_pods(10)
        story.label(**POLICY)
        story.wait(600)
        assert story.judge.least_available == 10
        story.limit_pods(None)
        story.wait(120)
        assert not story.unsettled(on_demand=4)
        keep(story, "cause-quota-surge")

    def test_a_missing_claim(self) -> None:
        """No node would help replicas whose claim is not there."""
        story = split("The claim that the pods name is gone while web is scaled out", volume=True)
        story.claim(there=False)
        story.scale(20)
        story.wait(600)
        assert story.scene.counts() == (6, 14)
        story.claim(there=True)
        story.wait(60)
        assert not story.unsettled(on_demand=6)
        keep(story, "cause-claim")

    def test_a_taint(self) -> None:
        """Spot nodes that do not take the pods are covered after the grace, under the cause's own name."""
        story = split("All spot nodes are tainted while web is scaled out")
        story.taint_spot("team=data:NoSchedule")
        story.scale(20)
        story.wait(600)
        assert story.scene.counts()[0] == 14
        story.taint_spot("")
        story.wait(2400)
        assert not story.unsettled(on_demand=6)
        keep(story, "cause-taint")
