"""Labels that other tools would recognise their own objects by do not go into a twin."""

import pytest

from splitter.core.desired.tracking import is_tracking, portable_labels, without_orders


class TestLabels:
    @pytest.mark.parametrize(
        "key",
        [
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "argocd.argoproj.io/instance",
            "kustomize.toolkit.fluxcd.io/name",
            "helm.toolkit.fluxcd.io/name",
            "helm.sh/chart",
            "kapp.k14s.io/app",
            "applyset.kubernetes.io/part-of",
            "splitter.io/split",
        ],
    )
    def test_tracking(self, key: str) -> None:
        """Neither copied by the default templates nor let through from any other."""
        assert portable_labels({key: "x"}) == {}
        assert is_tracking(key)

    def test_unknown_prefix(self) -> None:
        """A prefix nobody knows is not copied by default, yet a template's author may write it."""
        assert portable_labels({"company.example/rules": "x", "app": "web"}) == {"app": "web"}
        assert not is_tracking("company.example/rules")


class TestPodTemplates:
    def test_orders_to_reloader(self) -> None:
        """All by which it finds what it edits, of every kind of object; nothing that only looks like it."""
        orders = {
            "reloader.stakater.com/auto": "true",
            "reloader.stakater.com/search": "true",
            "secret.reloader.stakater.com/reload": "a,b",
            "configmap.reloader.stakater.com/auto": "true",
            "deployment.reloader.stakater.com/pause-period": "5m",
        }
        kept = {"notreloader.stakater.com/auto": "true", "checksum/config": "1"}
        written = {"reloader.stakater.com/last-reloaded-from": '{"kind":"CONFIGMAP"}'}
        assert without_orders({**orders, **kept, **written}) == {**kept, **written}
