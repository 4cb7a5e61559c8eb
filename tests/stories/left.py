"""Counts what goes on of a Deployment's pods once every controller has done what is written.

No pod becomes ready meanwhile, so what is missing then was taken by a write, whatever becomes of it later.
In the middle of a roll it is the most that may be left: which replicas a roll takes is judged as they end.
"""

from collections.abc import Callable
from typing import Final

from stories.scene import Scene, strategy
from world import clock
from world.controllers.replica_set import to_delete
from world.kinds import Raw
from world.pods import controller_of
from world.selectors import selects

_RELEASES: Final = "orphan"  # the finalizer of what goes without what it controls


def left(scene: Scene, among: Callable[[Raw], bool]) -> int:
    """Count the pods among these that no controller takes by what is written now."""
    free = scene.unowned()
    count, above = 0, {one["metadata"]["uid"]: one for one in (scene.source, *scene.twins.values())}
    of_whom: dict[str, list[Raw]] = {uid: [] for uid in above}
    for rs in scene.replica_sets():
        owner = controller_of(rs)
        if "deletionTimestamp" in rs["metadata"]:
            is_released = _RELEASES in (rs["metadata"].get("finalizers") or ())
            count += sum(map(among, _pods_of(scene, rs))) if is_released else 0
        elif owner is None:
            adopted = [pod for pod in free if selects(rs["spec"]["selector"], pod)]
            free = [pod for pod in free if pod not in adopted]
            count += sum(map(among, _kept(scene, rs, rs["spec"]["replicas"], adopted)))
        elif owner["uid"] in above:  # else the garbage collector takes it
            of_whom[owner["uid"]].append(rs)
    for uid, sets in of_whom.items():
        free = [pod for pod in free if not any(selects(rs["spec"]["selector"], pod) for rs in sets)]
        count += _left_by_controller(scene, above[uid], sets, among)
    return count + sum(map(among, free))


def _left_by_controller(scene: Scene, one: Raw, sets: list[Raw], among: Callable[[Raw], bool]) -> int:
    wanted, unowned = one["spec"]["replicas"], scene.unowned()
    active = [rs for rs in sets if rs["spec"]["replicas"]]
    most = wanted if len(active) == 1 else wanted + strategy(one)[0]
    kept = 0
    for rs in sets:
        adopted = [pod for pod in unowned if selects(rs["spec"]["selector"], pod)]
        kept += sum(map(among, _kept(scene, rs, min(rs["spec"]["replicas"], most), adopted)))
    return int(min(kept, most))


def _pods_of(scene: Scene, rs: Raw) -> list[Raw]:
    uid = rs["metadata"]["uid"]
    return [pod for pod in scene.pods() if (controller_of(pod) or {}).get("uid") == uid]


def _kept(scene: Scene, rs: Raw, replicas: int, adopted: list[Raw]) -> list[Raw]:
    """Return the pods that a ReplicaSet has at so many replicas."""
    pods = [*_pods_of(scene, rs), *adopted]
    going = to_delete(pods, pods, max(0, len(pods) - replicas), clock.now())
    return [pod for pod in pods if pod not in going]
