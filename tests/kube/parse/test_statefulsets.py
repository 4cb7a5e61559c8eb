"""StatefulSets as they are read: who writes their count, what is rolled."""

import json

import pytest

from kube.raw import Raw, stateful_set, written
from splitter.core.names import STATEFUL_SET, Key
from splitter.kube import parse
from splitter.kube.parse.fields import instant

NOW = instant("2026-01-05T10:00:00Z")
DB = Key(STATEFUL_SET, "shop", "db")


class TestSources:
    def test_untouched(self) -> None:
        """N is what it asks for; there may be one member beside the others, and one may be missing."""
        view = parse.source(stateful_set()).view
        assert view.key == DB
        assert (view.replicas, view.max_surge, view.max_unavailable) == (3, 1, 1)
        assert view.rollout_complete
        assert view.selector == "app=db"
        assert view.stateful is not None
        assert (view.stateful.saved, view.stateful.service) == (None, "db")

    @pytest.mark.parametrize(
        ("written", "at_once"),
        [(None, 1), (2, 2), ("40%", 2), ("1%", 1), ("0%", 1), (0, 1), ("9" * 5000 + "%", 1), ("x", 1)],
    )
    def test_how_many_its_update_takes_at_a_time(self, written: object, at_once: int) -> None:
        """`rollingUpdate.maxUnavailable`, a share rounded up; what cannot be read is the default."""
        rolling = {} if written is None else {"maxUnavailable": written}
        spec = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}, "minReadySeconds": 30}
        result = parse.source(stateful_set(spec=spec)).view.stateful
        assert result is not None
        assert (result.update_at_once, result.min_ready_s) == (at_once, 30.0)

    @pytest.mark.parametrize(
        ("written", "parallel"),
        [(None, False), ("OrderedReady", False), ("Parallel", True), ("Newer", False)],
    )
    def test_in_which_order_its_pods_are_made(self, written: str | None, parallel: bool) -> None:
        """What is not known counts as the default: it makes fewer pods."""
        spec = {} if written is None else {"podManagementPolicy": written}
        result = parse.source(stateful_set(spec=spec)).view.stateful
        assert result is not None
        assert result.parallel is parallel

    def test_split(self) -> None:
        """At 0, N is what was saved."""
        saved = {"splitter.io/replicas": '{"replicas":5,"left":0}'}
        view = parse.source(stateful_set(spec={"replicas": 0}, annotations=saved)).view
        assert view.replicas == 5
        assert view.stateful is not None
        assert (view.stateful.spec_replicas, view.stateful.saved, view.stateful.left) == (0, 5, 0)

    def test_a_roll(self) -> None:
        """Two revisions are a rollout in progress."""
        assert not parse.source(stateful_set(status={"updateRevision": "two"})).view.rollout_complete

    @pytest.mark.parametrize(
        ("entries", "applied", "declared_by"),
        [
            ([], None, ""),
            ([written("kubectl-client-side-apply")], {"replicas": 3}, ""),
            ([written("kubectl", "Apply")], None, ""),
            ([written("argocd-controller", "Apply")], None, "argocd-controller"),
            ([written("argocd-controller")], {"replicas": 3}, "argocd-controller"),
            ([written("argocd-controller")], {}, ""),  # the line was taken out of the manifest since
            ([written("kustomize-controller", "Apply")], None, "kustomize-controller"),
            ([written("splitter")], None, ""),
        ],
    )
    def test_who_declares_replicas(self, entries: list[Raw], applied: Raw | None, declared_by: str) -> None:
        """A GitOps manager that applies them again and again; a person who did once is none."""
        last = "kubectl.kubernetes.io/last-applied-configuration"
        annotations = {} if applied is None else {last: json.dumps({"spec": applied})}
        view = parse.source(stateful_set(managedFields=entries, annotations=annotations)).view
        assert view.stateful is not None
        assert view.stateful.declared_by == declared_by

    def test_who_wrote_last(self) -> None:
        """The newest of others; our own write is nobody's."""
        entries = [
            written("helm", time="2026-01-05T09:00:00Z"),
            written("kubectl", time="2026-01-05T09:10:00Z"),
            written("splitter", time="2026-01-05T09:20:00Z"),
        ]
        view = parse.source(stateful_set(managedFields=entries)).view
        assert view.stateful is not None
        assert view.stateful.writer == "kubectl"
