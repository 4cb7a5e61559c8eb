"""Which kind of holder answers for what is observed."""

from dataclasses import replace

from builders import observation, pods, replica_set, twin
from splitter.core.holders import holder_of, holders_of
from splitter.core.model import Attachment, Pool


def test_of_each_kind() -> None:
    """A StatefulSet has ordinals, as a twin or as the source's own."""
    parked, spot = replica_set(of=pods(2)), twin(Pool.SPOT, pods(2))
    views = (parked, replace(parked, first_ordinal=0), spot, replace(spot, first_ordinal=1000))
    kinds = ["ReplicaSet", "StatefulSet", "Deployment", "StatefulSet"]
    assert [holder_of(view).kind for view in views] == kinds
    assert [holder_of(view).keeps_names for view in views] == [kind == "StatefulSet" for kind in kinds]


def test_of_all_that_is_scaled() -> None:
    """What is parked and the twins; not what the source runs by itself."""
    sets = [replica_set("web-1"), replica_set("web-2", attachment=Attachment.ATTACHED)]
    seen = observation(sets=sets, on_demand=twin(Pool.ON_DEMAND), spot=None)
    assert [holder.view.name for holder in holders_of(seen)] == ["web-1", "web-on-demand"]
