"""Members of a StatefulSet in placement mode, as `placement` looks at them, for tests."""

from dataclasses import replace

from builders import NOW, ago, pod
from splitter.core.labels_annotations.policy import Policy
from splitter.core.placeable import Reach
from splitter.core.placement.members import Member, Placeholder, PlacementInput
from splitter.core.placement.place import Placed
from splitter.core.replica import NodeStatus, Pool

MAJORITY = Policy(on_demand_base="majority")
OD, SPOT = False, True


def member(
    ordinal: int,
    on_spot: bool,
    node_status: NodeStatus = NodeStatus.SOUND,
    *,
    born: Pool | None = None,
    reach: Reach = Reach(),  # noqa: B008 - frozen
    **fields: object,
) -> Member:
    """Return a member that is ready on a node of its own."""
    node = f"{'spot' if on_spot else 'od'}-{ordinal}"
    bound = node_status is not NodeStatus.UNBOUND
    fields = {"node": node, "node_uid": f"uid-{node}"} | fields if bound else fields
    made = pod(f"db-{ordinal}", node_status, on_spot=on_spot, **fields)  # type: ignore[arg-type]
    return Member(ordinal, made, born, reach)


def observed(*members: Member, in_force: tuple[int, ...] = (0, 1, 2), **fields: object) -> PlacementInput:
    """Return an input whose N is the number of members."""
    made = PlacementInput(NOW, "db", len(members), members, in_force)
    return replace(made, **fields)  # type: ignore[arg-type]


def five(*others: Member) -> tuple[Member, ...]:
    """Return five members at rest, 0-2 on on-demand, with some of them replaced."""
    given_ = {one.ordinal: one for one in others}
    return tuple(given_.get(k, member(k, SPOT if k > 2 else OD)) for k in range(5))


def reservation(
    ordinal: int, pool: Pool = Pool.SPOT, *, since_s: float = 3600, **fields: object
) -> Placeholder:
    """Return a placeholder that stands in its pool."""
    stands = {"on_spot": pool is Pool.SPOT, "ready_since": ago(since_s)} | fields
    return Placeholder(pool, ordinal, "", pod("held", **stands))  # type: ignore[arg-type]


def said(placed: Placed) -> str:
    """Return the verdict as people read it."""
    return f"{placed.verdict.reason}: {placed.verdict.message}"
