"""What was seen happening, reduced to what two clusters can be compared by: no instants, no random names.

A pod's life is the list of its states, with repeated equal ones folded: `waiting` (not ready), `ready`,
`ending` (being deleted), `Failed` or `Succeeded`, and a word for each change of owner. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from world.conformance.ground import Change, Raw

_COUNTS = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberReady",
    "numberMisscheduled",
)


def is_ready(pod: Raw) -> bool:
    """Return whether a pod says that it is ready."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def is_ending(raw: Raw) -> bool:
    """Return whether an object is being deleted."""
    return bool(raw["metadata"].get("deletionTimestamp"))


def serves(pod: Raw) -> bool:
    """Return whether a pod is ready and is not being deleted."""
    return is_ready(pod) and not is_ending(pod)


def state(pod: Raw) -> str:
    """Return where in its life a pod is."""
    if is_ending(pod):
        return "ending"
    phase = str(pod.get("status", {}).get("phase", ""))
    if phase in {"Failed", "Succeeded"}:
        return phase
    return "ready" if is_ready(pod) else "waiting"


def controller(raw: Raw) -> str:
    """Return kind and name of what controls an object, "" for none."""
    owners = raw["metadata"].get("ownerReferences") or []
    return next((f"{each['kind']}/{each['name']}" for each in owners if each.get("controller")), "")


def image(raw: Raw) -> str:
    """Return the image of a pod, or of the pods of a workload: it names a template."""
    spec = raw["spec"].get("template", raw)["spec"]
    return str(spec["containers"][0]["image"])


def folded(words: Iterable[str]) -> list[str]:
    """Return the words, those left out that equal the one before."""
    kept: list[str] = []
    for word in words:
        if kept[-1:] != [word]:
            kept.append(word)
    return kept


def lives(pods: Sequence[Change]) -> list[str]:
    """Return the lives that pods had, each once: owner's kind, template, and states."""
    seen: dict[str, list[str]] = {}
    owners: dict[str, str] = {}
    born: dict[str, str] = {}
    for change in pods:
        uid, owner = change.raw["metadata"]["uid"], controller(change.raw).partition("/")[0] or "no owner"
        words = seen.setdefault(uid, [])
        born.setdefault(uid, f"{owner}, {image(change.raw)}")
        if owners.setdefault(uid, owner) != owner:
            words.append(f"({owner})")
            owners[uid] = owner
        words.append("gone" if change.deleted else state(change.raw))
    return sorted({f"{born[uid]}: {' '.join(_states(words))}" for uid, words in seen.items()})


def _states(words: Sequence[str]) -> Iterator[str]:
    """Yield states without repeated ones, also where only the owner changed in between."""
    last = ""
    for word in words:
        if word.startswith("("):
            yield word
        elif word != last:
            yield word
            last = word


def standings(pods: Sequence[Change]) -> list[str]:
    """Return each change of a pod's state, owner or node, in order."""
    last: dict[str, str] = {}
    words = []
    for change in pods:
        raw, name = change.raw, change.raw["metadata"]["name"]
        word = "gone" if change.deleted else f"{state(raw)} {controller(raw)} {raw['spec'].get('nodeName')}"
        if last.get(name) != word:
            words.append(f"{name} {word}")
            last[name] = word
    return words


def counts(pods: Sequence[Change], counted: Callable[[Raw], bool]) -> list[int]:
    """Return how many pods there were that count, after each change."""
    now: dict[str, Raw] = {}
    numbers = []
    for change in pods:
        uid = change.raw["metadata"]["uid"]
        if change.deleted:
            now.pop(uid, None)
        else:
            now[uid] = change.raw
        numbers.append(sum(map(counted, now.values())))
    return numbers


def present(changes: Sequence[Change]) -> dict[str, Raw]:
    """Return the objects that are there after all changes, by name."""
    now: dict[str, Raw] = {}
    for change in changes:
        name = change.raw["metadata"]["name"]
        if not change.deleted:
            now[name] = change.raw
        elif name in now and now[name]["metadata"]["uid"] == change.raw["metadata"]["uid"]:
            del now[name]
    return now


def totals(sets: Sequence[Change]) -> list[int]:
    """Return how many replicas all ReplicaSets together were asked for, after each change."""
    now: dict[str, int] = {}
    sums = []
    for change in sets:
        now[change.raw["metadata"]["uid"]] = 0 if change.deleted else change.raw["spec"]["replicas"]
        sums.append(sum(now.values()))
    return sums


def sizes(changes: Sequence[Change], name: str) -> list[str]:
    """Return the replicas that were asked of a workload, one after the other."""
    return folded(
        str(each.raw["spec"]["replicas"]) for each in changes if each.raw["metadata"]["name"] == name
    )


def described(kind: str, raw: Raw) -> str:
    """Return a workload's counts."""
    status = raw.get("status", {})
    words = [f"{name} {status[name]}" for name in _COUNTS if status.get(name)]
    size = raw["spec"].get("replicas", "-")
    made = "pod-template-hash" in (raw["metadata"].get("labels") or {})  # by a Deployment: a random name
    name = image(raw) if made else raw["metadata"]["name"]
    return f"{kind} {name}: asked {size}, {', '.join(words) or 'nothing'}"


def end(kinds: dict[str, Sequence[Change]]) -> list[str]:
    """Return what is there at the end: workloads with their counts, and pods by owner, template and state."""
    words = []
    for kind, changes in kinds.items():
        raws = present(changes).values()
        if kind != "Pod":
            words += sorted(described(kind, raw) for raw in raws)
            continue
        owners = [controller(raw).partition("/")[0] or "no owner" for raw in raws]
        groups = Counter((owner, image(raw), state(raw)) for owner, raw in zip(owners, raws, strict=True))
        words += sorted(f"{number} pods of {', '.join(group)}" for group, number in groups.items())
    return words
