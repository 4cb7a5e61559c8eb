"""Reads `KEY=VALUE` from the command line as annotations, and annotations as a policy.

`simulate` and `render` share it. The sentences are the controller's own; a fault is a `ValueError`, which
the verb shows on standard error (`exits.faults_as_sentences`) before it ends with exit code 1.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from splitter.core.division import caps_conflict
from splitter.core.labels_annotations import PREFIX
from splitter.core.labels_annotations.policy import Policy, parse_policy, without_last_good


class PolicyFault(ValueError):  # noqa: N818 - what is wrong with a policy, in sentences
    """Annotations that cannot be obeyed: one sentence for each."""

    def __init__(self, *sentences: str) -> None:
        super().__init__(" ".join(sentences))
        self.sentences = sentences


@dataclass(frozen=True, slots=True)
class Named:
    """A policy with the name under which it is compared."""

    name: str
    annotations: dict[str, str]


def read_annotations(pairs: Iterable[str]) -> dict[str, str]:
    """Return annotations from `KEY=VALUE`; `splitter.io/` before the key may be left out.

    Raises ValueError when one is no pair, or a key comes twice.

    >>> read_annotations(["spot-percent=80"])
    {'splitter.io/spot-percent': '80'}
    """
    annotations: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ValueError(f'"{pair}" is no annotation; write KEY=VALUE, such as spot-percent=80')
        key = key if "/" in key else PREFIX + key
        if key in annotations:
            raise ValueError(f"{key} is there twice; leave one out")
        annotations[key] = value.strip()
    return annotations


def read_named(texts: Iterable[str], common: Mapping[str, str]) -> list[Named]:
    """Return policies from `NAME:KEY=VALUE,KEY=VALUE`; what a policy does not say, `common` says.

    Raises ValueError as `read_annotations`, with the policy's name, and when a name comes twice.

    >>> read_named(["careful:on-demand-base=4,soak=1h"], {})[0].name
    'careful'
    """
    workloads: list[Named] = []
    for text in texts:
        name, colon, written = text.partition(":")
        name = name.strip()
        if not name or (not colon and "=" in name):
            raise ValueError(f'policy "{text}" has no name; write NAME:KEY=VALUE,KEY=VALUE')
        if name in {policy.name for policy in workloads}:
            raise ValueError(f"policy {name} is there twice; give one another name")
        try:
            own = read_annotations(part for part in written.split(",") if part.strip())
        except ValueError as fault:
            raise ValueError(f"policy {name}: {fault}") from fault
        workloads.append(Named(name, {**common, **own}))
    return workloads


def policy_of(
    annotations: Mapping[str, str], defaults: Policy, replicas: int
) -> tuple[Policy, tuple[str, ...]]:
    """Return the policy that annotations ask for, and warnings about those that mean nothing.

    Raises PolicyFault with a sentence for each that cannot be obeyed.
    """
    parsed = parse_policy(annotations, defaults)
    sentences = tuple(f"{note.reason}: {without_last_good(note.message)}" for note in parsed.problems)
    if parsed.policy is None:
        raise PolicyFault(*sentences)
    if caps_conflict(replicas, parsed.policy):
        raise PolicyFault(
            f"InvalidPolicy: on-demand-max {parsed.policy.on_demand_max} and spot-max"
            f" {parsed.policy.spot_max} hold fewer than the {replicas} replicas; raise one of them."
        )
    return parsed.policy, sentences
