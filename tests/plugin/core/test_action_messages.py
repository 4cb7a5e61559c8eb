"""What `splitter plan` would write, a line for each kind of action: names and counts, and no template."""

from typing import get_args

import pytest

from builders import NOW
from splitter.core import actions as do
from splitter.core.replica import Pool
from splitter.plugin.core.action_messages import describe

SECRET = "a value of a template"
SPOT = Pool.SPOT
EACH: list[tuple[do.Action, str]] = [
    (do.EnsureSplit(takes_over=True), "create the Split"),
    (do.EnsureSplit(takes_over=False), "create a Split that only reports"),
    (do.DeleteSplit(), "delete the Split"),
    (do.SetOwnershipMark("v1"), "mark the source as taken over"),
    (do.SetOwnershipMark(None), "remove the mark from the source"),
    (do.SetPaused(paused=True, resource_version="rv"), "pause the source"),
    (do.SetPaused(paused=False, resource_version="rv"), "unpause the source"),
    (do.Scale(do.HolderKind.STATEFUL_SET, "db-spot", 3, 5, None), "scale statefulset db-spot 3 -> 5"),
    (do.DeleteTwin("web-spot", "uid"), "delete twin web-spot"),
    (do.ApplyTwin(SPOT, SECRET, "hash", 4, 1, 0, None), "create the spot twin at 4"),
    (do.ApplyTwin(SPOT, SECRET, "hash", 4, 1, 0, "rv"), "roll the spot twin at 4"),
    (do.SetDeletionCost("web-1", "uid", "-1000"), "set the deletion cost of pod web-1"),
    (do.SetDeletionCost("web-1", "uid", None), "restore the deletion cost of pod web-1"),
    (do.PlaceOrdinals((0, 2)), "put on-demand ordinals 0, 2 in force on the Split"),
    (do.PlaceOrdinals(()), "put on-demand ordinals none in force on the Split"),
    (do.EvictPod("db-0", "uid", SPOT), "evict pod db-0, to start anew on spot"),
    (do.DeleteUnboundPod("db-0", "uid"), "delete pod db-0, which has no node"),
    (do.DeleteVanishedPod("web-1", "uid", "node-1"), "delete pod web-1 of vanished node node-1"),
    (do.SetBudget("web-guard", 4), "let web-guard keep 4 pods"),
    (do.SetBudget("web-guard", None), "delete web-guard"),
    (
        do.CreatePlaceholder(SPOT, "spot/3/abc", SECRET),
        "create a placeholder on spot for ordinal 3",
    ),
    (
        do.CreatePlaceholder(SPOT, "relief/node-1", SECRET, "node-1"),
        "create a placeholder that keeps spot off node-1",
    ),
    (do.SaveReplicas(5, 0, "rv"), "save 5 replicas on the source"),
    (do.ShowReplicas(5), "show 5 replicas on the Split"),
    (do.ReleaseSource(), "remove the mark and the saved replicas from the source"),
    (do.Park("web-1", "rv", ("app",)), "park replicaset web-1"),
    (do.Reattach("web-1", "rv", (), active=False), "give replicaset web-1 back to the source"),
    (do.PauseTwin("web-spot", paused=True, resource_version="rv"), "pause twin web-spot"),
    (do.PauseTwin("web-spot", paused=False, resource_version="rv"), "resume twin web-spot"),
    (do.LabelPod("web-1", "uid", SPOT), "label pod web-1 for spot"),
    (do.LabelPod("web-1", "uid", None), "unlabel pod web-1"),
    (do.KeepRevision("kept", None), "keep the template of the source as kept, at 0"),
    (do.KeepRevision("kept", "web-1"), "keep the template of replicaset web-1 as kept, at 0"),
    (do.OrphanPods("web-1", "uid", "rv"), "delete replicaset web-1 and leave its pods running"),
    (do.DeletePod("web-1-a", "uid"), "delete pod web-1-a, on which no ReplicaSet acts"),
    (
        do.AdoptPods("web-spot-1", SPOT, ("1",), None),
        "create replicaset web-spot-1 for the running pods",
    ),
    (do.StripOwnershipMark("web-1"), "take the mark off replicaset web-1"),
    (do.HideAvailable(), "take the condition splitter.io/Available off the source"),
    (do.RetryPods("web-1", "uid", NOW), "have replicaset web-1 create the pods that it was refused"),
    (do.DeleteReplicaSet("web-1", "uid", "rv"), "delete replicaset web-1"),
    (
        do.RestoreTemplate("web-spot", "web-1", "rv", tried=False),
        "put the template of web-1 back on web-spot",
    ),
    (do.DeletePlaceholder("web-placeholder", "uid"), "delete placeholder web-placeholder"),
]


@pytest.mark.parametrize(("action", "line"), EACH, ids=[line for _, line in EACH])
def test_says(action: do.Action, line: str) -> None:
    """In words that kubectl users know, on one line."""
    assert describe(action) == line


def test_each_kind_is_tried() -> None:
    """A new one has a line here."""
    assert {type(action) for action, _ in EACH} == set(get_args(do.Action))


def test_what_is_not_said_is_the_template() -> None:
    """Nothing of what a twin or a placeholder is made of."""
    assert not [action for action, _ in EACH if SECRET in describe(action)]
