"""What the Deployment controller computes: sizes, shares, revisions, statuses. Nothing is written here.

Source: pkg/controller/deployment/util/deployment_util.go of Kubernetes 1.36.
"""

import hashlib
from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Final

import orjson

from world import clock
from world.kinds import Raw

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
HASH: Final = "pod-template-hash"
_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        REVISION,
        HISTORY,
        DESIRED,
        MOST,
        "deprecated.deployment.rollback.to",
    }
)
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_FOREVER: Final = 2**31 - 1


def uid(raw: Raw) -> str:
    """Return the UID of an object."""
    text: str = raw["metadata"]["uid"]
    return text


def age(rs: Raw) -> tuple[str, str]:
    """Sort by creation, and by name where that is the same second (ReplicaSetsByCreationTimestamp)."""
    return rs["metadata"].get("creationTimestamp", ""), rs["metadata"]["name"]


def count(raw: Raw, name: str) -> int:
    """Return a number of a status."""
    number: int = (raw.get("status") or {}).get(name, 0)
    return number


def noted(rs: Raw, name: str) -> int | None:
    """Return a number of an annotation; None where there is none that can be read."""
    text = (rs["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isdecimal() and int(text) <= _FOREVER else None


def revision(rs: Raw) -> int:
    """Return the revision of a ReplicaSet; 0 where it bears none."""
    return noted(rs, REVISION) or 0


# --- templates -------------------------------------------------------------------------------------


def is_same_template(one: Raw, another: Raw) -> bool:
    """Whether two pod templates are the same but for the hash (EqualIgnoreHash)."""
    return _bare(one) == _bare(another)


def _bare(template: Raw) -> Raw:
    metadata = template.get("metadata") or {}
    labels = {key: text for key, text in (metadata.get("labels") or {}).items() if key != HASH}
    rest = {
        key: value for key, value in metadata.items() if key not in {"labels", "creationTimestamp"} and value
    }
    return {"labels": labels, "metadata": rest, "spec": template.get("spec") or {}}


def newest(one: Raw, sets: Sequence[Raw]) -> Raw | None:
    """Return the oldest ReplicaSet with the Deployment's template: all others are old ones."""
    template = one["spec"]["template"]
    alike = (rs for rs in sorted(sets, key=age) if is_same_template(rs["spec"]["template"], template))
    return next(alike, None)


def replica_set(one: Raw, collisions: int) -> Raw:
    """Return the ReplicaSet of a Deployment's template, named by its hash."""
    template, selector = one["spec"]["template"], one["spec"]["selector"]
    text = orjson.dumps([_bare(template), collisions], option=orjson.OPT_SORT_KEYS)
    digest = hashlib.sha256(text).digest()[:10]
    hashed = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH: hashed}
    ready_s = one["spec"].get("minReadySeconds", 0)
    return {
        "metadata": {"name": f"{one['metadata']['name']}-{hashed}", "labels": labels},
        "spec": {
            **({"minReadySeconds": ready_s} if ready_s else {}),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: hashed}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


def annotated(one: Raw, rs: Raw, number: int) -> dict[str, str]:
    """Return a ReplicaSet's annotations with the Deployment's, and the revision."""
    annotations = dict(rs["metadata"].get("annotations") or {})
    theirs = one["metadata"].get("annotations") or {}
    annotations |= {key: text for key, text in theirs.items() if key not in _NOT_COPIED}
    before = annotations.get(REVISION, "")
    if before and not before.lstrip("-").isdecimal():
        return annotations
    if int(before or 0) < number:
        annotations[REVISION] = str(number)
        if before:
            history = annotations.get(HISTORY, "")
            annotations[HISTORY] = f"{history},{before}" if history else before
    return annotations


# --- sizes -----------------------------------------------------------------------------------------


def fenceposts(one: Raw) -> tuple[int, int]:
    """Return maxSurge, rounded up, and maxUnavailable, rounded down and at most all (ResolveFenceposts)."""
    strategy, replicas = one["spec"]["strategy"], one["spec"]["replicas"]
    if strategy["type"] != "RollingUpdate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    surge = _scaled(rolling.get("maxSurge", 0), replicas, up=True)
    unavailable = _scaled(rolling.get("maxUnavailable", 0), replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, replicas)


def _scaled(number: int | str, of: int, *, up: bool) -> int:
    if isinstance(number, int):
        return number
    share = int(number.rstrip("%")) * of / 100
    return ceil(share) if up else floor(share)


def counts_noted(one: Raw) -> dict[str, str]:
    """Return the annotations by which a scaling is noticed."""
    replicas = one["spec"]["replicas"]
    return {DESIRED: str(replicas), MOST: str(replicas + fenceposts(one)[0])}


def new_size(one: Raw, sets: Sequence[Raw], size: int) -> int:
    """Return how large the newest ReplicaSet may become (NewRSNewReplicas) beside all `sets`."""
    replicas = one["spec"]["replicas"]
    if one["spec"]["strategy"]["type"] == "Recreate":
        return int(replicas)
    left = replicas + fenceposts(one)[0] - sum(rs["spec"]["replicas"] for rs in sets)
    return int(size + max(0, min(left, replicas - size)) if left > 0 else size)


def active_or_latest(new: Raw | None, old: Sequence[Raw]) -> Raw | None:
    """Return the only ReplicaSet with replicas, or the newest where none has any (FindActiveOrLatest)."""
    active = [rs for rs in (*old, *([new] if new is not None else [])) if rs["spec"]["replicas"] > 0]
    if len(active) == 1:
        return active[0]
    if active:
        return None
    return new if new is not None else max(old, key=age, default=None)


def is_saturated(one: Raw, new: Raw) -> bool:
    """Whether the newest ReplicaSet has all that are wanted, and knows it."""
    wanted = one["spec"]["replicas"]
    return {new["spec"]["replicas"], noted(new, DESIRED), count(new, "availableReplicas")} == {wanted}


def proportions(one: Raw, sets: Sequence[Raw]) -> dict[str, int]:
    """Return the size of each active ReplicaSet once a scaling is shared out among them, by UID."""
    wanted = one["spec"]["replicas"]
    allowed = wanted + fenceposts(one)[0] if wanted > 0 else 0
    active = [rs for rs in sets if rs["spec"]["replicas"] > 0]
    to_add = allowed - sum(rs["spec"]["replicas"] for rs in active)
    # The largest first; of equals the newest when scaling up, the oldest when scaling down.
    active.sort(key=age, reverse=to_add > 0)
    active.sort(key=lambda rs: -int(rs["spec"]["replicas"]))
    added, sizes = 0, {}
    for rs in active:
        share = 0
        if to_add not in {0, added}:
            fraction, left = _fraction(one, rs), to_add - added
            share = min(fraction, left) if to_add > 0 else max(fraction, left)
        sizes[uid(rs)] = rs["spec"]["replicas"] + share
        added += share
    if active and to_add:
        largest = uid(active[0])
        sizes[largest] = max(0, sizes[largest] + to_add - added)
    return sizes


def _fraction(one: Raw, rs: Raw) -> int:
    size, wanted = rs["spec"]["replicas"], one["spec"]["replicas"]
    if wanted == 0:
        return -int(size)
    before = noted(rs, MOST) or count(one, "replicas")
    if not before:
        return 0
    exact = size * (wanted + fenceposts(one)[0]) / before
    return int(floor(exact + 0.5) - size)


# --- status ----------------------------------------------------------------------------------------


def condition(one: Raw, kind: str) -> Raw | None:
    """Return a condition of a Deployment."""
    return next(
        (each for each in (one.get("status") or {}).get("conditions") or () if each["type"] == kind), None
    )


def set_condition(status: Raw, kind: str, value: str, reason: str, **said: str) -> None:
    """Set a condition (SetDeploymentCondition): with the same status and reason nothing changes."""
    there = condition({"status": status}, kind)
    if there is not None and (there["status"], there["reason"]) == (value, reason):
        return
    now = clock.stamp()
    since = there["lastTransitionTime"] if there is not None and there["status"] == value else now
    made = {
        "type": kind,
        "status": value,
        "reason": reason,
        "lastUpdateTime": now,
        "lastTransitionTime": since,
        **said,
    }
    status["conditions"] = [*_others(status, kind), made]


def _others(status: Raw, kind: str) -> list[Raw]:
    return [each for each in status.get("conditions") or () if each["type"] != kind]


def has_deadline(one: Raw) -> bool:
    """Whether its progress is judged."""
    return bool(one["spec"].get("progressDeadlineSeconds", _FOREVER) != _FOREVER)


def status_of(one: Raw, sets: Sequence[Raw], new: Raw | None) -> Raw:
    """Return the status of what was seen (calculateStatus); what is 0 is left out."""
    available = sum(count(rs, "availableReplicas") for rs in sets)
    total = sum(rs["spec"]["replicas"] for rs in sets)
    before = one.get("status") or {}
    counts = {
        "observedGeneration": one["metadata"]["generation"],
        "replicas": sum(count(rs, "replicas") for rs in sets),
        "updatedReplicas": count(new, "replicas") if new is not None else 0,
        "readyReplicas": sum(count(rs, "readyReplicas") for rs in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, total - available),
        "collisionCount": before.get("collisionCount", 0),
    }
    status: Raw = {name: number for name, number in counts.items() if number}
    status["conditions"] = list(before.get("conditions") or ())
    enough = available >= one["spec"]["replicas"] - fenceposts(one)[1]
    said = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    set_condition(status, "Available", "True" if enough else "False", said)
    return status


def is_complete(one: Raw, status: Mapping[str, int]) -> bool:
    """Whether all are there, of the newest template, and available (DeploymentComplete)."""
    counts = {status.get(name, 0) for name in ("updatedReplicas", "replicas", "availableReplicas")}
    return (
        counts == {one["spec"]["replicas"]}
        and status.get("observedGeneration", 0) >= one["metadata"]["generation"]
    )


def judge_progress(one: Raw, status: Raw) -> None:
    """Say whether a rollout gets on, is done, or has not got on for too long (syncRolloutStatus)."""
    there = condition(one, "Progressing")
    if not has_deadline(one):
        status["conditions"] = _others(status, "Progressing")
        return
    reason = there["reason"] if there is not None else ""
    if status.get("replicas", 0) == status.get("updatedReplicas", 0) and reason == "NewReplicaSetAvailable":
        return
    if is_complete(one, status):
        set_condition(status, "Progressing", "True", "NewReplicaSetAvailable")
    elif _gets_on(one.get("status") or {}, status):
        since = there["lastTransitionTime"] if there is not None and there["status"] == "True" else None
        status["conditions"] = _others(status, "Progressing")
        kept = {"lastTransitionTime": since} if since is not None else {}
        set_condition(status, "Progressing", "True", "ReplicaSetUpdated", **kept)
    elif _is_late(one, condition({"status": status}, "Progressing")):
        set_condition(status, "Progressing", "False", "ProgressDeadlineExceeded")


def _gets_on(before: Mapping[str, int], now: Mapping[str, int]) -> bool:
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    old_now = now.get("replicas", 0) - now.get("updatedReplicas", 0)
    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old_now < old_before or any(now.get(name, 0) > before.get(name, 0) for name in more)


def _is_late(one: Raw, progressing: Raw | None) -> bool:
    if progressing is None or progressing["reason"] == "NewReplicaSetAvailable":
        return False
    if progressing["reason"] == "ProgressDeadlineExceeded":
        return True
    passed_s = (clock.now() - clock.instant(progressing["lastUpdateTime"])).total_seconds()
    return bool(passed_s > one["spec"]["progressDeadlineSeconds"])


def set_failure(status: Raw, new: Raw | None, sets: Sequence[Raw]) -> None:
    """Copy that pods of a ReplicaSet are refused; of the newest one first (getReplicaFailures)."""
    failures = [
        failure
        for rs in ([new] if new is not None else []) + list(sets)
        if (failure := condition(rs, "ReplicaFailure")) is not None
    ]
    if not failures:
        status["conditions"] = _others(status, "ReplicaFailure")
        return
    failure = failures[0]
    said = {name: failure[name] for name in ("message", "lastTransitionTime") if name in failure}
    set_condition(status, "ReplicaFailure", failure["status"], failure["reason"], **said)
