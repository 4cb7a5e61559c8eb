"""What others say: Events about Nodes, Karpenter's NodeClaims, the status of cluster-autoscaler."""

import re
from datetime import datetime

import yaml

from splitter.core.errors import UNREADABLE
from splitter.core.names import NAME_MAX, is_name
from splitter.core.nodes.facts import NodeEvent, Taint
from splitter.core.nodes.signals import TERMINATION_ANNOTATION
from splitter.core.nodes.spot_supply import AutoscalerStatus, Claim, NodeGroup
from splitter.kube.parse.fields import Raw, UnreadableError, identity, instant, short, texts
from splitter.kube.parse.pods import expressions
from splitter.kube.records import AutoscalerRecord, ClaimRecord, NodeEventRecord, RefusalRecord

# libyaml where it is there: a status has a kilobyte a group, and is written anew every ten seconds.
_Loader: type[yaml.CSafeLoader | yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Go's own way of writing a time: 2026-01-05 10:00:00.123456789 +0000 UTC m=+1.5
_GO_TIME = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.\d+)? ([+-]\d{2})(\d{2})")
_BACKOFF = "Backoff"
# More requirements and taints than a NodeClaim has, and more groups than an autoscaler.
_MOST, _MOST_GROUPS = 100, 1000


def event_words(raw: Raw) -> tuple[str, str]:
    """Return the kind that an Event is about and its reason, to tell whether the rest is worth reading."""
    return str((raw.get("involvedObject") or {}).get("kind", "")), str(raw.get("reason", ""))


def node_event(raw: Raw) -> NodeEventRecord:
    """Parse an Event about a Node. Raises UnreadableError for a name that no Node has."""
    name, uid = _about(raw)
    return NodeEventRecord(
        *identity(raw["metadata"]), name, uid, NodeEvent(event_words(raw)[1], _last_seen(raw))
    )


def refusal(raw: Raw) -> RefusalRecord:
    """Parse an Event that says that a NodeClaim got no machine. Raises UnreadableError as `node_event`."""
    return RefusalRecord(*identity(raw["metadata"]), _last_seen(raw), *_about(raw))


def _about(raw: Raw) -> tuple[str, str]:
    """Return the name and the UID of the object that an Event is about; the UID may be empty.

    The API server checks neither of them, and does not limit their length.
    """
    about = raw["involvedObject"]
    if not is_name(name := about.get("name")):
        raise UnreadableError("it is about a name that no object has")
    return name, str(about.get("uid", ""))[:NAME_MAX]


def claim(raw: Raw) -> ClaimRecord:
    """Parse a NodeClaim."""
    metadata, spec, status = raw["metadata"], raw.get("spec", {}), raw.get("status", {})
    true = {one["type"] for one in status.get("conditions", ()) if one["status"] == "True"}
    return ClaimRecord(
        *identity(metadata),
        name=metadata["name"],
        node=short(status.get("nodeName", "")),
        launched="Launched" in true,
        voluntary="DisruptionReason" in true,
        consolidates="Consolidatable" in true,
        ends=short(texts(metadata.get("annotations")).get(TERMINATION_ANNOTATION, "")),
        claim=Claim(
            expressions((spec.get("requirements") or ())[:_MOST]),
            tuple(
                Taint(taint["key"], taint.get("value", ""), taint["effect"])
                for taint in spec.get("taints", ())[:_MOST]
            ),
        ),
    )


def autoscaler(raw: Raw) -> AutoscalerRecord:
    """Parse the status ConfigMap of cluster-autoscaler; None in it where nothing can be understood."""
    metadata = raw["metadata"]
    return AutoscalerRecord(
        *identity(metadata),
        status=autoscaler_status((raw.get("data") or {}).get("status", "")),
    )


def autoscaler_status(text: str) -> AutoscalerStatus | None:
    """Read `data.status`, YAML since cluster-autoscaler 1.30; None when it says nothing of use.

    Text without the word Backoff is not parsed: it is long, comes every ten seconds, and says that all is
    well. Of the plain text of older versions nothing is understood.
    """
    if _BACKOFF not in text:
        return None
    try:
        document = yaml.load(text, _Loader)  # noqa: S506 (both loaders are safe ones)
        at = _go_time(str(document["time"]))
        groups = tuple(_group(one) for one in (document.get("nodeGroups") or ())[:_MOST_GROUPS])
    except (yaml.YAMLError, *UNREADABLE):
        return None
    return AutoscalerStatus(at, groups)


def _group(raw: Raw) -> NodeGroup:
    grows = raw.get("scaleUp") or {}
    why = (grows.get("backoffInfo") or {}).get("errorCode", "")
    return NodeGroup(short(str(raw["name"])), grows.get("status") == _BACKOFF, short(str(why)))


def _go_time(text: str) -> datetime:
    if (written := _GO_TIME.match(text)) is None:
        raise ValueError(f"no time of Go's: {text!r}")
    day, clock, hours, minutes = written.groups()
    return datetime.fromisoformat(f"{day}T{clock}{hours}:{minutes}")


def _last_seen(raw: Raw) -> datetime:
    """Return when an Event happened last; each recorder fills in other fields."""
    series = raw.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        raw.get("lastTimestamp"),
        raw.get("eventTime"),
        raw.get("firstTimestamp"),
    )
    return instant(next(filter(None, times), raw["metadata"]["creationTimestamp"]))
