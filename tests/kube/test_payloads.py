"""What is sent to the API server: the bodies of writes."""

import pytest

from builders import source
from kube.raw import Raw, stateful_set, written
from splitter.core.actions import AdoptPods, CreatePlaceholder, SaveReplicas
from splitter.core.names import Key
from splitter.core.replica import Pool
from splitter.kube.payloads import (
    adopting,
    placeholder,
    released,
    reporting_split,
    saved_replicas,
    template_of_revision,
)


class TestPlaceholder:
    def test_of_relief_is_counted_by_nobody(self) -> None:
        """Neither a label of the user's, nor the one by which the guard selects; it goes with the Split."""
        made = placeholder(source(), "uid-split", CreatePlaceholder(Pool.SPOT, "relief/n-1", "{}", "n-1"))
        no_mesh = {"sidecar.istio.io/inject": "false"}
        assert made["metadata"]["labels"] == {"splitter.io/placeholder": "spot", **no_mesh}
        held = {"splitter.io/held-for": "relief/n-1", "linkerd.io/inject": "disabled"}
        assert made["metadata"]["annotations"] == held
        [owner] = made["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("Split", "uid-split", True)

    @pytest.mark.parametrize("name", ["web", "w" * 240])
    def test_of_each_node_has_a_name_of_its_own(self, name: str) -> None:
        """One that a hostname may have, however long the workload's is; and the same the next time."""
        view = source(key=Key("Deployment", "shop", name))
        actions = [CreatePlaceholder(Pool.SPOT, "relief/n", "{}", f"node-{n}") for n in range(50)]
        names = [placeholder(view, "uid", one)["metadata"]["name"] for one in (*actions, *actions)]
        assert len(set(names)) == 50
        assert max(map(len, names)) <= 63
        assert all(one.startswith(name[:30]) for one in names)

    def test_of_placement_has_one_name(self) -> None:
        """There is one of a workload, and it says whose."""
        made = placeholder(source(), "uid-split", CreatePlaceholder(Pool.SPOT, "spot/4/abc", "{}"))
        assert made["metadata"]["name"] == "web-placeholder"
        assert made["metadata"]["labels"]["splitter.io/source"] == "web"


class TestSplit:
    def test_says_its_format(self) -> None:
        """An older version that does not know it leaves the workload alone."""
        assert reporting_split(source(), takes_over=True)["spec"]["format"] == 2


class TestAdopting:
    @pytest.mark.parametrize(
        ("match", "kept"),
        [
            ({"matchLabels": {"app": "web"}}, False),
            ({"matchLabels": {"app": "web", "splitter.io/split": "enabled"}}, True),
            ({"matchExpressions": [{"key": "splitter.io/split", "operator": "Exists"}]}, True),
        ],
    )
    def test_of_a_template_with_the_label_of_ours(self, match: Raw, kept: bool) -> None:
        """The ReplicaSet has it only if its owner would let it go without; its pods have it as before."""
        labels = {"app": "web", "splitter.io/split": "enabled"}
        template = {"metadata": {"labels": labels}, "spec": {}}
        owner = {"metadata": {"name": "web", "uid": "u"}, "spec": {"selector": match, "template": template}}
        made = adopting(source(), AdoptPods("web-h1", None, ("h1",), None), owner, owner)
        assert ("splitter.io/split" in made["metadata"]["labels"]) is kept
        assert made["spec"]["template"]["metadata"]["labels"] == {**labels, "pod-template-hash": "h1"}


class TestBodies:
    def test_saving_is_guarded(self) -> None:
        """It fails when somebody has written since."""
        assert saved_replicas(SaveReplicas(5, 5, "7"))["metadata"]["resourceVersion"] == "7"

    @pytest.mark.parametrize(
        ("entries", "kept"),
        [([written("splitter"), written("kubectl")], [written("kubectl")]), ([written("splitter")], [{}])],
    )
    def test_release(self, entries: list[Raw], kept: list[Raw]) -> None:
        """Our name goes from the writers, too: left there, an apply of its user would be a conflict."""
        body = released(stateful_set(managedFields=entries))["metadata"]
        assert body["managedFields"] == kept
        assert body["annotations"] == {"splitter.io/taken-over": None, "splitter.io/replicas": None}

    def test_template_of_a_revision(self) -> None:
        """Without the directive that makes it a patch."""
        data = {"spec": {"template": {"$patch": "replace", "spec": {}, "metadata": {}}}}
        assert template_of_revision({"data": data}) == {"spec": {}, "metadata": {}}
