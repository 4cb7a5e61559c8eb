"""Splits and Namespaces, as they are read."""

import pytest

from kube.raw import READY, Raw, metadata
from splitter.core.names import Key
from splitter.core.split_status import UNREPORTED, RebalanceState
from splitter.kube import parse
from splitter.kube.packed import unpacked
from splitter.kube.parse.fields import instant


def split(status: object = None, spec: Raw | None = None) -> Raw:
    """Return the Split of `web`."""
    named = {"source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "takeOver": True}
    return {"metadata": metadata("web"), "spec": named if spec is None else spec, "status": status}


class TestSplits:
    def test_as_written(self) -> None:
        """What a reconcile must remember comes back out of the status."""
        status = {
            "state": "Steady",
            "conflict": True,
            "writeConflicts": [READY],
            "memory": {
                "rebalance": {"lost": True},
                "policyAnnotations": {"splitter.io/soak": "5m"},
            },
        }
        result = parse.split(split(status))
        assert result.source == Key("Deployment", "shop", "web")
        assert (result.view.takes_over, result.state) == (True, "Steady")
        reported = result.view.status
        assert (reported.state, reported.conflict) == ("Steady", True)
        assert reported.write_conflicts == (instant(READY),)
        assert reported.memory.rebalance == RebalanceState(lost=True)
        assert reported.memory.good_annotations == {"splitter.io/soak": "5m"}
        assert unpacked(result.status) == status

    def test_its_own_owner_is_read_first(self) -> None:
        """However many others add themselves: else it would be taken over anew each time, and never kept."""
        others = [{"kind": "Release", "name": f"app-{k}", "uid": f"uid-app-{k}"} for k in range(9)]
        own = {"kind": "Deployment", "name": "web", "uid": "uid-web"}
        raw = split()
        raw["metadata"] |= {"ownerReferences": [*others, own]}
        uids = parse.split(raw).view.owner_uids
        assert "uid-web" in uids
        assert len(uids) == 4

    @pytest.mark.parametrize("memory", ["x", 3, [], {"policyAnnotations": 3}])
    def test_odd_memory(self, memory: object) -> None:
        """Remembers nothing."""
        result = parse.split(split({"memory": memory}))
        assert result.view.status == UNREPORTED

    @pytest.mark.parametrize("status", [None, {}])
    def test_fresh(self, status: object) -> None:
        """A Split without status remembers nothing."""
        result = parse.split(split(status))
        assert (result.view.status, result.state, unpacked(result.status)) == (UNREPORTED, "", {})

    def test_only_reporting(self) -> None:
        """A Split that does not take over reports a refusal."""
        assert not parse.split(split(spec={"source": {"name": "web"}, "takeOver": False})).view.takes_over

    @pytest.mark.parametrize(("spec", "form"), [({}, 1), ({"format": 2}, 2), ({"format": "3"}, 1)])
    def test_format(self, spec: dict[str, object], form: int) -> None:
        """What says none, or nonsense, is of the first one."""
        assert parse.split(split(spec={"takeOver": True, **spec})).view.format == form

    def test_spec_emptied_by_hand(self) -> None:
        """A Split whose spec says nothing is about the Deployment of its own name."""
        result = parse.split(split(spec={}))
        assert result.source == Key("Deployment", "shop", "web")
        assert not result.view.takes_over

    def test_status_is_canonical(self) -> None:
        """The order of keys is not a change that would be written again and again."""
        one, other = split({"state": "Steady", "ready": 4}), split({"ready": 4, "state": "Steady"})
        assert parse.split(one).status == parse.split(other).status


class TestNamespaces:
    def test_only_ours(self) -> None:
        """Of a namespace only our own annotations are kept."""
        annotations = {"splitter.io/soak": "5m", "field.cattle.io/projectId": "p"}
        result = parse.namespace({"metadata": metadata("shop", annotations=annotations)})
        assert (result.name, result.annotations) == ("shop", {"splitter.io/soak": "5m"})

    def test_without_annotations(self) -> None:
        """A namespace that says nothing has no defaults."""
        assert parse.namespace({"metadata": metadata("shop")}).annotations == {}
