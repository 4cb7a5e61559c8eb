"""Selects what of an object goes into a bundle: names, counts and reasons, no user's values.

Pure: objects as the API server gives them in, files out (`plugin.cli.bundle` writes them). Only fields that
are named here are kept, never the whole of an object without those that are known to be bad: a field that a
later Kubernetes brings is left out. Words of others lose what they quote, as in logs (`report.discretion`).
"""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import yaml

from splitter.core.errors import UNREADABLE
from splitter.core.labels_annotations import PREFIX
from splitter.report.discretion import without_values
from splitter.settings.loading import ENVIRONMENT_PREFIX, PLACES, in_file, place_of, placed

Raw = Mapping[str, Any]
_CUT: Final = "…"
_SPEAKER: Final = "splitter.io/splitter"
_METADATA: Final = ("namespace", "name", "uid", "generation", "creationTimestamp", "deletionTimestamp")
_CONDITION: Final = ("type", "status", "reason", "lastTransitionTime")
_COUNTS: Final = ("replicas", "paused", "minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit")
_STATUS: Final = (
    *("observedGeneration", "replicas", "readyReplicas", "availableReplicas", "updatedReplicas"),
    *("unavailableReplicas", "terminatingReplicas", "currentReplicas", "fullyLabeledReplicas"),
)
_LEASE: Final = ("holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions")
_SENTENCES: Final = frozenset({"message", "signal", "conflictingWriter"})
# Of a Split's spec; what is not named is not splitter's.
_SPLIT_SPEC: Final = ("source", "takeOver", "format", "onDemandOrdinals", "replicas")


def files(objects: Mapping[str, list[Any]]) -> dict[str, str]:
    """Return the JSON file of each kind of object that was read."""
    shaped: dict[str, Callable[[Raw], object]] = {
        "version": lambda raw: {key: raw.get(key) for key in ("gitVersion", "platform")},
        "deployment": _controller,
        "settings": _settings,
        "pods": _pod,
        "lease": lambda raw: _kept(raw.get("spec"), _LEASE),
        "splits": _split,
        "deployments": _workload,
        "statefulsets": _workload,
        "replicasets": _workload,
    }
    made: dict[str, list[Any]] = {
        name: [shape(raw) for raw in objects[name]] for name, shape in shaped.items() if name in objects
    }
    if "events" in objects:
        made["events"] = _events(objects)
    return {
        f"{name}.json": json.dumps(content, indent=1, default=str) + "\n" for name, content in made.items()
    }


def overview(version: str, names: Iterable[str], failures: Mapping[str, str], leader: str) -> str:
    """Return README.txt: what there is, who leads, and what could not be read and why."""
    lines = [f"splitter {version}", f"leader: {leader or 'unknown'}", "", "In this archive:"]
    lines += [f"  {name}" for name in names]
    if failures:
        lines += ["", "Could not be read:"]
        lines += [f"  {part}: {without_values(why)}" for part, why in sorted(failures.items())]
    lines += [
        "",
        "No Secret was asked for, and no value of a pod template is in it. Names of workloads, nodes,",
    ]
    lines += ["namespaces and labels are: look through it before you make it public.", ""]
    return "\n".join(lines)


def _kept(raw: Raw | None, fields: Iterable[str]) -> dict[str, Any]:
    kept = raw or {}
    return {field: kept[field] for field in fields if field in kept}


def _metadata(raw: Raw) -> dict[str, Any]:
    """Return names, labels and owners; of annotations splitter's own."""
    metadata = raw.get("metadata") or {}
    kept = _kept(metadata, _METADATA)
    kept["labels"] = dict(metadata.get("labels") or {})
    annotations = metadata.get("annotations") or {}
    kept["annotations"] = {key: value for key, value in annotations.items() if key.startswith(PREFIX)}
    kept["owners"] = [
        _kept(owner, ("kind", "name", "controller")) for owner in metadata.get("ownerReferences") or ()
    ]
    return kept


def _conditions(status: Raw) -> list[dict[str, Any]]:
    return [
        {**_kept(one, _CONDITION), "message": without_values(str(one.get("message", "")))}
        for one in status.get("conditions") or ()
    ]


def _workload(raw: Raw) -> dict[str, Any]:
    """Return what a twin, a source or a ReplicaSet is called and counts; nothing of its template."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    strategy = spec.get("strategy") or spec.get("updateStrategy") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    return {
        "metadata": _metadata(raw),
        "spec": {**_kept(spec, _COUNTS), "strategy": strategy, "containers": len(containers)},
        "status": {**_kept(status, _STATUS), "conditions": _conditions(status)},
    }


def _split(raw: Raw) -> dict[str, Any]:
    return {
        "metadata": _metadata(raw),
        "spec": _kept(raw.get("spec"), _SPLIT_SPEC),
        "status": _without_values(raw.get("status") or {}),
    }


def _without_values(value: object, field: str = "") -> object:
    """Return a status whose sentences quote nothing."""
    if isinstance(value, Mapping):
        return {key: _without_values(one, str(key)) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_values(one, field) for one in value]
    return (
        without_values(value) if isinstance(value, str) and (field in _SENTENCES or " " in value) else value
    )


def _controller(raw: Raw) -> dict[str, Any]:
    """Return splitter's own Deployment: images and settings; never what a Secret holds."""
    kept = _workload(raw)
    pod = ((raw.get("spec") or {}).get("template") or {}).get("spec") or {}
    kept["containers"] = [
        {
            **_kept(one, ("name", "image", "resources")),
            "args": _arguments(one.get("args") or ()),
            "env": [_variable(each) for each in one.get("env") or ()],
        }
        for one in pod.get("containers") or ()
    ]
    kept["pod"] = _kept(pod, ("serviceAccountName", "priorityClassName", "terminationGracePeriodSeconds"))
    return kept


def _arguments(words: Iterable[object]) -> list[str]:
    """Return the verb, the names of options, and where the settings are; other words are cut."""
    kept: list[str] = []
    for number, word in enumerate(map(str, words)):
        if word.startswith("-"):
            name, equals, _ = word.partition("=")
            kept.append(f"{name}={_CUT}" if equals else name)
        else:
            kept.append(word if number == 0 or kept[-1] == "--settings" else _CUT)
    return kept


def _variable(raw: Raw) -> dict[str, Any]:
    """Return a variable's name, and its value where it is a setting that is written there."""
    name = str(raw.get("name", ""))
    if sources := raw.get("valueFrom"):
        return {"name": name, "from": sorted(sources)}
    is_setting = name.startswith(ENVIRONMENT_PREFIX) and place_of(name) in PLACES
    return {"name": name, "value": raw.get("value", "") if is_setting else _CUT}


def _settings(raw: Raw) -> dict[str, Any]:
    """Return the settings of the file; of what is no setting, the name."""
    try:
        parsed = yaml.safe_load((raw.get("data") or {}).get("settings.yaml", ""))
    except (yaml.YAMLError, *UNREADABLE):
        return {"unreadable": "settings.yaml is no YAML"}
    if not isinstance(parsed, dict):
        return {}
    return {in_file(place): value if place in PLACES else _CUT for place, value in placed(parsed).items()}


def _pod(raw: Raw) -> dict[str, Any]:
    """Return how one pod of splitter's does."""
    status = raw.get("status") or {}
    return {
        "metadata": _metadata(raw),
        "node": (raw.get("spec") or {}).get("nodeName", ""),
        "status": {**_kept(status, ("phase", "reason", "startTime")), "conditions": _conditions(status)},
        "containers": [
            {
                **_kept(one, ("name", "ready", "restartCount", "image", "imageID")),
                "state": _state(one.get("state")),
                "lastState": _state(one.get("lastState")),
            }
            for one in status.get("containerStatuses") or ()
        ],
    }


def _state(raw: Raw | None) -> dict[str, Any]:
    fields = ("reason", "exitCode", "signal", "startedAt", "finishedAt")
    return {name: _kept(one, fields) for name, one in (raw or {}).items()}


def _events(objects: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Return splitter's own Events; of others' about its objects the reason alone, and no words."""
    ours = {
        (one["metadata"].get("namespace"), one["metadata"]["name"])
        for part in ("deployment", "pods", "splits", "deployments", "statefulsets", "replicasets")
        for one in objects.get(part, ())
    }
    events = []
    for raw in objects["events"]:
        regarding = _kept(raw.get("regarding"), ("kind", "namespace", "name"))
        is_said_by_us = raw.get("reportingController") == _SPEAKER
        if is_said_by_us or (regarding.get("namespace"), regarding.get("name")) in ours:
            kept = _kept(raw, ("type", "reason", "action", "eventTime", "deprecatedLastTimestamp", "series"))
            kept |= {"regarding": regarding, "by": raw.get("reportingController", "")}
            if is_said_by_us:
                kept["note"] = without_values(str(raw.get("note", "")))
            events.append(kept)
    return events
