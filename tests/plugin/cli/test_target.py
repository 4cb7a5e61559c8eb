"""Which workloads a verb is about."""

import pytest
import typer

from splitter.core.names import Key
from splitter.plugin.cli.target import Target, target_of


class TestTheTarget:
    """Workloads are named as kubectl names them."""

    @pytest.mark.parametrize("written", ["deploy/web", "deployment/web", "deployments.apps/web"])
    def test_is_named_as_kubectl_names_it(self, written: str) -> None:
        """All of kubectl's spellings mean the same Deployment; the namespace defaults to `default`."""
        assert target_of(written, None, everywhere=False) == Target("default", "web", "Deployment")

    @pytest.mark.parametrize("written", ["sts/db", "statefulset/db", "statefulsets.apps/db"])
    def test_may_be_a_stateful_set(self, written: str) -> None:
        """Its kind is said, and a Deployment of that name is another one."""
        target = target_of(written, "shop", everywhere=False)
        assert (target.words, target.short) == ("statefulset shop/db", "sts/db")
        assert target.includes(Key("StatefulSet", "shop", "db"))
        assert not target.includes(Key("Deployment", "shop", "db"))

    def test_may_leave_its_kind_out(self) -> None:
        """To look, a name alone means both kinds; to write, a Deployment."""
        target = target_of("web", "shop", everywhere=False)
        assert target.includes(Key("StatefulSet", "shop", "web"))
        assert target.key == Key("Deployment", "shop", "web")

    def test_is_everything_with_all_namespaces(self) -> None:
        """-A includes every key."""
        target = target_of(None, None, everywhere=True)
        assert target.includes(Key("Deployment", "shop", "web"))
        assert target.namespaces == ()

    def test_without_a_name_is_one_namespace(self) -> None:
        """-n shop includes what is in shop, and nothing else."""
        target = target_of(None, "shop", everywhere=False)
        assert target.includes(Key("Deployment", "shop", "web"))
        assert not target.includes(Key("Deployment", "bank", "web"))

    @pytest.mark.parametrize(("written", "everywhere"), [("ds/db", False), ("web", True)])
    def test_refuses_what_cannot_be_meant(self, written: str, everywhere: bool) -> None:
        """Another kind, and one name in all namespaces, are wrong usage."""
        with pytest.raises(typer.BadParameter):
            target_of(written, None, everywhere=everywhere)
