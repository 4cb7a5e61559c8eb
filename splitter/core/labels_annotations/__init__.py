"""Every label and annotation that users or splitter write, and the names of what is ours.

Each key is spelled once: the planner, the templates and the writers take it from here. `policy` has a row for
each annotation of the user's, and parses them into a valid `Policy`, or into sentences that say what to
write instead. `label` reads the label and the mark, `saved` the count of a StatefulSet, and `words` has the
forms of values. Nothing here decides what is done about bad input (the last good policy stays in force:
`core.planner`), and nothing raises for it.
"""

import hashlib
from typing import Final

from splitter.core.labels_annotations.words import quoted
from splitter.core.model import Mode, Note
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key, is_name
from splitter.core.reasons import Reason
from splitter.core.replica import Pool

PREFIX: Final = "splitter.io/"

# Labels. `splitter.io/split` is `enabled` on a source, and marks what is ours with the other two.
LABEL_SPLIT: Final = "splitter.io/split"
LABEL_POOL: Final = "splitter.io/pool"
LABEL_SOURCE: Final = "splitter.io/source"
SPLIT_ENABLED: Final = "enabled"
SPLIT_TWIN: Final = "twin"
SPLIT_PARKED: Final = "parked"
# Users' own workloads, labelled whatever the value; not what splitter has labelled.
SOURCES_SELECTOR: Final = f"{LABEL_SPLIT},{LABEL_SPLIT} notin ({SPLIT_TWIN}, {SPLIT_PARKED}),!{LABEL_POOL}"
# Twins by their pool: `kubectl label deployment --all splitter.io/split-` reaches the twins' other label too.
TWINS_SELECTOR: Final = LABEL_POOL

# Annotations a user writes on a source, or on its namespace as a default, where more than their row
# (`policy.Policy`) names them.
ANNOTATION_ON_DEMAND_BASE: Final = "splitter.io/on-demand-base"
ANNOTATION_SPOT_PERCENT: Final = "splitter.io/spot-percent"
ANNOTATION_ON_DEMAND_MAX: Final = "splitter.io/on-demand-max"
ANNOTATION_SPOT_MAX: Final = "splitter.io/spot-max"
ANNOTATION_GRACE: Final = "splitter.io/grace"
ANNOTATION_SOAK: Final = "splitter.io/soak"
ANNOTATION_LINGER: Final = "splitter.io/linger"
ANNOTATION_MODE: Final = "splitter.io/mode"
ANNOTATION_FREEZE: Final = "splitter.io/freeze"
ANNOTATION_TEMPLATE: Final = "splitter.io/template"
ANNOTATION_VOLUMES: Final = "splitter.io/volumes"
ANNOTATION_RELIEF: Final = "splitter.io/relief"
ANNOTATION_RESTARTED_AT: Final = "splitter.io/restarted-at"
ANNOTATION_ROLLOUT_AT: Final = "splitter.io/rollout-at"

# On ConfigMaps of splitter's own namespace that hold a template set: followed whatever the value, and read
# where it is right, so that a wrong one is said.
LABEL_TEMPLATE_SET: Final = "splitter.io/template-set"
TEMPLATE_SET_ENABLED: Final = "enabled"
ANNOTATION_NAMESPACES: Final = "splitter.io/namespaces"

# A condition of ours in the status of a source, and by what Karmada marks the objects that it writes.
CONDITION_AVAILABLE: Final = "splitter.io/Available"
LABEL_KARMADA: Final = "karmada.io/managed"

# On the CRD of the Splits: it must not be deleted (manifests/admission/keep-crd.yaml).
CRD_NAME: Final = "splits.splitter.io"
ANNOTATION_KEEP: Final = "splitter.io/keep"

# On placeholders: which they are, and the move that they hold room for; those of relief bear the last and
# the node.
LABEL_PLACEHOLDER: Final = "splitter.io/placeholder"
ANNOTATION_HELD_FOR: Final = "splitter.io/held-for"
HELD_FOR_RELIEF: Final = "relief/"

# The form of what splitter writes down about a workload: in the mark, in the saved replicas, in the Split's
# spec, 1 if none is given. A version that an older one would misread writes a higher number there
# (docs/adr/0044). 2: what only splitter reads of a Split's status is in its `memory`.
STATE_FORMAT: Final = 2

# Annotations of ours.
ANNOTATION_TAKEN_OVER: Final = "splitter.io/taken-over"
ANNOTATION_REPLICAS: Final = "splitter.io/replicas"
ANNOTATION_RENDERED_HASH: Final = "splitter.io/rendered-hash"
ANNOTATION_MADE_OF: Final = "splitter.io/made-of"
# On a twin's ReplicaSet: when we had it try again to create the pods that it was refused.
ANNOTATION_RETRIED: Final = "splitter.io/retried"
# On a parked ReplicaSet: whose it is, even when it has lost its owner (an annotation: names may be long).
ANNOTATION_SOURCE: Final = "splitter.io/source"

OWN_ANNOTATIONS: Final = (
    ANNOTATION_TAKEN_OVER,
    ANNOTATION_REPLICAS,
    ANNOTATION_RENDERED_HASH,
    ANNOTATION_MADE_OF,
    ANNOTATION_SOURCE,
    ANNOTATION_RETRIED,
)

# What Kubernetes allows for a label's value.
LABEL_VALUE_MAX: Final = 63
_HASH_LENGTH: Final = 8
# Kubernetes names a ReplicaSet `<deployment>-<hash of at most 10>`, within the 253 of a DNS
# subdomain; and labels a StatefulSet's pods with `<statefulset>-<hash of 10>`, within 63. Twins of
# 57 characters and more are accepted by the API and never get a pod (H73).
_LONGEST_GUARD: Final = 253 - len("-guard")
_LONGEST_TWIN_NAME: Final = {"Deployment": 253 - 11, "StatefulSet": 63 - 11}


def short_name(name: str, max_len: int = LABEL_VALUE_MAX) -> str:
    """Return `name`, or where it is longer than `max_len` its beginning and a hash of the whole.

    Two long names with one beginning stay apart; the result is a valid label value, as the name
    of an object is. `max_len` must leave room for the hash (at least 10).

    >>> short_name("web"), len(short_name("w" * 253))
    ('web', 63)
    """
    if len(name) <= max_len:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: max_len - _HASH_LENGTH - 1].rstrip('-.')}-{digest}"


# Where the ordinals of a StatefulSet's spot twin begin, above those of its source: no two pods of the twins
# have the same, and scaling one never renames the other's.
SPOT_ORDINALS: Final = 1000

# What keeps the Splits of a Deployment and a StatefulSet of one name apart.
_SPLIT_SUFFIX: Final = "-sts"


def split_name(key: Key) -> str:
    """Return the name of a source's Split: `web`, or of a StatefulSet `db` `db-sts`."""
    return f"{key.name}{_SPLIT_SUFFIX}" if key.kind == STATEFUL_SET else key.name


def guard_name(key: Key) -> str:
    """Return the name of the PodDisruptionBudget that guards a source: `web-guard`, `db-sts-guard`."""
    return f"{short_name(split_name(key), _LONGEST_GUARD)}-guard"


def source_of_split(kind: str, namespace: str, name: str) -> Key:
    """Return which source a Split of this name is about, given the kind that it says.

    One that says StatefulSet under a name that no StatefulSet's Split has is a copy, and says nothing.

    >>> source_of_split("StatefulSet", "shop", "db-sts").name
    'db'
    """
    if kind == STATEFUL_SET and name.endswith(_SPLIT_SUFFIX):
        return Key(kind, namespace, name.removesuffix(_SPLIT_SUFFIX))
    return Key(DEPLOYMENT, namespace, name)


def twin_name(source_name: str, pool: Pool) -> str:
    """Return the name of a twin: `web` gives `web-on-demand` and `web-spot`.

    Never shortened (people look for it by hand); `name_problem` refuses what would not fit.
    """
    return f"{source_name}-{pool.value}"


def kept_name(source_name: str, template_hash: str) -> str:
    """Return the name of the ReplicaSet at 0 that keeps the template of pods with this hash."""
    return f"{source_name}-split{template_hash}"


def has_names(key: Key) -> bool:
    """Whether its Split and its twins could be called as they would be: a suffix may be too much.

    >>> has_names(Key("StatefulSet", "shop", "d" * 250))
    False
    """
    return is_name(split_name(key)) and all(is_name(twin_name(key.name, pool)) for pool in Pool)


def name_problem(kind: str, name: str, mode: Mode = Mode.TWINS) -> Note | None:
    """Return why a workload of this name cannot be split, or None; unknown kinds have no limit.

    The limit is what leaves room for the longer suffix of the twins and for what Kubernetes itself appends: a
    Deployment's name may have 232 characters, a StatefulSet's 42, and in placement mode 52.
    """
    longest = _LONGEST_TWIN_NAME.get(kind)
    twins = mode is Mode.TWINS
    suffix = max(len(twin_name("", pool)) for pool in Pool) if twins else 0
    if longest is None or len(name) <= longest - suffix:
        return None
    because = (
        f"its twins are called {twin_name('<name>', Pool.ON_DEMAND)} and {twin_name('<name>', Pool.SPOT)}"
        if twins
        else "Kubernetes labels its pods with the name and a hash, and makes none of a longer one"
    )
    message = (
        f"the name {quoted(name)} has {len(name)} characters; a {kind} to be split may have at most "
        f"{longest - suffix}, because {because}. Give it a shorter name, or remove the label {LABEL_SPLIT}."
    )
    return Note(Reason.NAME_TOO_LONG, message, warning=True)
