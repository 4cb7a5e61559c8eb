"""The stored Placements: who is woken by a change of one, and what the admission policy knows."""

from typing import Any

import pytest

from kube.raw import metadata
from splitter.core.names import STATEFUL_SET, Key
from splitter.core.nodes.signals import assess
from splitter.kube.cache import Cache

SET = {"kind": STATEFUL_SET}


class Placements:
    """A cache, and whom it has woken."""

    def __init__(self) -> None:
        self.woken: list[Key] = []
        self.cache = Cache(assess, lambda key, **_: self.woken.append(key))


@pytest.fixture
def placements() -> Placements:
    """Return an empty cache."""
    return Placements()


class TestHearing:
    """What others do to a Placement."""

    def placement(self, version: int, **sets: list[dict[str, int]]) -> dict[str, Any]:
        """Return it as the API server shows it."""
        published = {f"uid-{name}": {"name": name, "onDemandOrdinals": runs} for name, runs in sets.items()}
        meta = metadata("splitter-placement", version=version)
        return {"kind": "Placement", "metadata": meta, "spec": {"statefulSets": published}}

    async def test_wakes_whom_it_concerns(self, placements: Placements) -> None:
        """Just those of whom it says something else, and who are there: anybody can name others."""
        for name in ("db", "cache"):
            placements.cache.splits.upsert({"metadata": metadata(f"{name}-sts"), "spec": {"source": SET}})
        placements.cache.placements.written(
            self.placement(5, db=[{"first": 0, "last": 1}], cache=[]), frozenset()
        )
        placements.woken.clear()
        changed = self.placement(6, db=[{"first": 0, "last": 2}], cache=[], nobody=[{"first": 0, "last": 2}])
        placements.cache.placements.written(changed, frozenset())
        assert set(placements.woken) == {Key(STATEFUL_SET, "shop", "db")}

    async def test_is_a_reason_to_look(self, placements: Placements) -> None:
        """A workload that only the policy still knows of is looked at too, at the start."""
        placements.cache.placements.written(self.placement(5, db=[]), frozenset())
        assert placements.cache.workloads() == {Key(STATEFUL_SET, "shop", "db")}

    async def test_follows_one_name(self, placements: Placements) -> None:
        """Whoever may write Placements may write any number, and only the policy's is sent to us."""
        reflector = placements.cache.placements.reflector(None, "shop")  # type: ignore[arg-type] # nothing is asked
        assert reflector._selector == {"fieldSelector": "metadata.name=splitter-placement"}  # noqa: SLF001

    async def test_a_copy_says_nothing(self, placements: Placements) -> None:
        """The policy reads one name only."""
        copy = self.placement(5, db=[])
        copy["metadata"]["name"] = "backup"
        placements.cache.placements.written(copy, frozenset())
        assert placements.cache.placements.published("shop", "uid-db") is None


class TestWhatThePolicyKnows:
    """Ordinals by StatefulSet, and the labels of spot nodes."""

    def test_of_a_set_that_is_not_named_is_nothing(self, placements: Placements) -> None:
        """By its UID: another one of the same name is another one."""
        published = {"uid-db": {"name": "db", "onDemandOrdinals": [{"first": 0, "last": 2}]}}
        raw = {"metadata": metadata("splitter-placement", version=5), "spec": {"statefulSets": published}}
        known = placements.cache.placements
        assert known.published("shop", "uid-db") is None
        known.written(raw, frozenset())
        assert known.published("shop", "uid-db") == ((0, 2),)
        assert known.published("shop", "uid-else") is None
        assert known.published("bank", "uid-db") is None
        known.forget(raw["metadata"]["uid"])
        assert known.published("shop", "uid-db") is None

    def test_labels_that_were_seen_stay(self, placements: Placements) -> None:
        """Such nodes may come back; until it is told of them the policy does not know them."""
        known = placements.cache.placements
        assert known.knows_nodes("shop")
        known.saw(["spot=yes"])
        known.saw([])
        assert known.spot_labels("shop") == frozenset({"spot=yes"})
        assert not known.knows_nodes("shop")
        spec = {"spotLabels": ["spot=yes"], "statefulSets": {}}
        known.written({"metadata": metadata("splitter-placement", version=6), "spec": spec}, frozenset())
        assert not known.knows_nodes("shop"), "what was asked for then is what counts for that answer"
        known.written(
            {"metadata": metadata("splitter-placement", version=7), "spec": spec}, frozenset({"spot=yes"})
        )
        assert known.knows_nodes("shop")
