"""What is kept of a namespace has a bound, and one that is over it costs the others nothing."""

import pytest

from kube.cached import cache
from kube.crowd import have_shares_of_nine, pod
from splitter.kube.shares import Shares


@pytest.fixture(autouse=True)
def share(monkeypatch: pytest.MonkeyPatch) -> int:
    """Have a share hold nine pods."""
    return have_shares_of_nine(monkeypatch)


class TestShares:
    def test_no_more_than_its_share(self, caplog: pytest.LogCaptureFixture) -> None:
        """What is over it is not kept, and that is said once, with what to do; others keep theirs."""
        kept = cache()
        for number in range(30):
            kept.pods.upsert(pod(number))
            kept.pods.upsert(pod(number % 5, "shop"))
        assert len(kept.pods) == 9 + 5
        assert kept.shares.over == {"evil"}
        [said] = [record.getMessage() for record in caplog.records]
        assert said.startswith("nothing is done in namespace evil")
        assert "Delete some" in said

    def test_of_all_kinds_together(self) -> None:
        """A share is one for all kinds."""
        kept = cache()
        for number in range(9):
            kept.pods.upsert(pod(number))
        budget = {"metadata": pod(0)["metadata"] | {"uid": "uid-b"}, "spec": {}}
        kept.budgets.indexer.upsert(budget)
        assert not len(kept.budgets.indexer)
        assert kept.shares.over == {"evil"}

    def test_a_list_that_is_being_read(self) -> None:
        """Its objects count before it is complete, and no more when it is given up."""
        kept = cache()
        listed = [kept.pods.read(pod(number)) for number in range(30)]
        assert sum(one.record is not None for one in listed) == 9
        kept.pods.discard(listed)
        kept.shares.over.clear()
        kept.pods.replace([kept.pods.read(pod(number)) for number in range(9)], None, 9)
        assert len(kept.pods) == 9
        assert not kept.shares.over

    def test_what_changes_counts_once(self, share: int) -> None:
        """However often an object changes, is listed, is told of late, or goes and comes."""
        kept = cache()
        for version in range(1, 100):
            kept.pods.upsert(pod(0, version=version))
            kept.pods.upsert(pod(0, version=1))
            kept.pods.replace([kept.pods.read(pod(0, version=version)) for _ in range(2)], None, version)
        assert not kept.shares.over
        kept.pods.replace((), None, 1000)
        assert kept.shares.reserve("evil", share)

    def test_long_labels_count(self) -> None:
        """A bare pod takes as much more as its labels have bytes."""
        kept = cache()
        for number in range(4):
            raw = pod(number)
            raw["metadata"]["labels"] = {f"l{one}": "" for one in range(500)}
            kept.pods.upsert(raw)
        assert len(kept.pods) == 2

    def test_what_has_no_namespace(self) -> None:
        """Nodes and the like are nobody's share."""
        shares = Shares()
        assert shares.reserve("", 2**40)
        assert not shares.over
