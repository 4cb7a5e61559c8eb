"""What is compared when a workload was given back."""

from demo.a_run import JsonObject, deployment
from lab.demo.restored import OWN_ANNOTATIONS, PREFIX, Portrait, differences, traces, uncollected
from splitter.core import labels_annotations


class TestRestored:
    """A Deployment that is given back is compared field by field."""

    def test_the_same_is_restored(self) -> None:
        """The revision that Kubernetes counts is not the user's."""
        before = Portrait.of(deployment(annotations={"deployment.kubernetes.io/revision": "1", "team": "a"}))
        after = Portrait.of(deployment(annotations={"deployment.kubernetes.io/revision": "2", "team": "a"}))
        assert differences(before, after) == []

    def test_what_is_left_behind_is_named(self) -> None:
        """Each field with what it is and was."""
        raw = deployment(annotations={"splitter.io/taken-over": "x"})
        raw["spec"]["paused"] = True
        assert differences(Portrait.of(deployment()), Portrait.of(raw)) == [
            "web: spec.paused is True, was absent",
            "web: annotations.splitter.io/taken-over is 'x', was absent",
        ]

    def test_what_the_user_changed_is_expected(self) -> None:
        """A count and an image that were set meanwhile stay."""
        raw = deployment()
        raw["spec"]["replicas"] = 9
        raw["spec"]["template"]["spec"]["containers"] = [{"name": "web", "image": "web:2"}]
        expected = Portrait.of(deployment()).scaled(9).with_image("web:2")
        assert differences(expected, Portrait.of(raw)) == []
        assert differences(Portrait.of(deployment()), Portrait.of(raw)) == [
            "web: spec.replicas is 9, was 4",
            "web: spec.template.spec.containers[0].image is 'web:2', was 'web:1'",
        ]

    def test_traces_elsewhere_are_named(self) -> None:
        """Labels and marks of splitter's, and a Split; not the user's own annotations."""
        left = [
            {"kind": "Split", "metadata": {"name": "web"}},
            {"kind": "Pod", "metadata": {"name": "web-1", "labels": {"splitter.io/pool": "spot"}}},
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "web-a", "annotations": {"splitter.io/taken-over": "x"}},
            },
            {
                "kind": "ReplicaSet",
                "metadata": {"name": "web-b", "annotations": {"splitter.io/spot-max": "3"}},
            },
            {"kind": "Deployment", "metadata": {"name": "web", "annotations": {"splitter.io/spot-max": "3"}}},
        ]
        assert traces("web", left) == [
            "web: Split web is still there",
            "web: Pod web-1 still carries splitter.io/pool",
            "web: ReplicaSet web-a still carries splitter.io/taken-over",
        ]

    def test_a_gone_twins_replica_set_is_kubernetes_to_collect(self) -> None:
        """It is waited for; the user's own, and what another workload's twin has, are not."""

        def owned(name: str, owner: str) -> JsonObject:
            return {
                "kind": "ReplicaSet",
                "metadata": {"name": name, "ownerReferences": [{"kind": "Deployment", "name": owner}]},
            }

        left = [
            owned("web-a", "web"),
            owned("web-spot-b", "web-spot"),
            owned("web-api-spot-c", "web-api-spot"),
        ]
        assert uncollected("web", left) == ["web-spot-b"]


def test_knows_what_splitter_writes() -> None:
    """Its list of splitter's own annotations is splitter's."""
    assert set(labels_annotations.OWN_ANNOTATIONS) == OWN_ANNOTATIONS
    assert labels_annotations.PREFIX == PREFIX
