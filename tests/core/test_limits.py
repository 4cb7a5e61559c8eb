"""What is larger than splitter looks after: refused with its size and the limit, and left as it is."""

from typing import Any

import pytest

from builders import NOW, free_source, observation, split
from splitter.core import limits
from splitter.core.eligibility import objection_while_split, refusal
from splitter.core.model import Policy, SourceView, StatefulView
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.reasons import Reason

DB = Key(STATEFUL_SET, "shop", "db")


def stateful(replicas: int, claims: int = 0, **fields: Any) -> SourceView:  # noqa: ANN401 (SourceView's)
    """Return a StatefulSet with so many claims a member."""
    only = StatefulView(
        spec_replicas=replicas,
        status_replicas=replicas,
        available_replicas=replicas,
        created=NOW,
        claim_templates=tuple(f"data-{number}" for number in range(claims)),
    )
    return free_source(replicas, key=DB, stateful=only, **fields)


TOO_LARGE = [
    (free_source(manifest_json="x" * (limits.MAX_MANIFEST_BYTES + 1024)), "513 KiB", "512 KiB"),
    (free_source(claims=tuple(map(str, range(51)))), "51 volume claims", "most 50"),
    (stateful(1001), "1001 replicas", "most 1000"),
    (stateful(126, 2), "252 volume claims", "most 250"),
]


@pytest.mark.parametrize(("source", "size", "limit"), TOO_LARGE)
def test_over_a_limit(source: SourceView, size: str, limit: str) -> None:
    """It is refused before anything else is said of it; what is split already stays so."""
    found = refusal(observation(source=source), source, Policy(), ())
    assert found is not None
    assert found.reason is Reason.TOO_LARGE
    assert size in found.message
    assert limit in found.message
    assert found.warning
    kept = objection_while_split(observation(source=source, split=split()), source, Policy())
    assert kept is not None
    assert kept.reason is Reason.TOO_LARGE
    assert "stays split" in kept.message


@pytest.mark.parametrize(
    "source",
    [
        free_source(manifest_json="x" * limits.MAX_MANIFEST_BYTES),
        free_source(100_000),
        free_source(claims=tuple(map(str, range(50)))),
        stateful(1000),
        stateful(125, 2),
        stateful(0, 100),
    ],
)
def test_within_all(source: SourceView) -> None:
    """As large as it may be; how many replicas a Deployment has costs nothing."""
    assert limits.too_large(source) == ""
