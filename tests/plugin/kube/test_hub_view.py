"""What Karmada's API server asks for, as it changes, and what may not be read there."""

from http import HTTPStatus

from kube.server import Script, client_of, connected, refusal
from splitter.core.names import DEPLOYMENT, STATEFUL_SET, Key
from splitter.plugin.kube.hub_view import HubView
from world.api import Api
from world.kinds import DEPLOYMENTS, STATEFUL_SETS, Ref
from world.server import served

WEB, DB = Key(DEPLOYMENT, "shop", "web"), Key(STATEFUL_SET, "shop", "db")


def put(api: Api, kind: str, name: str, **spec: int) -> None:
    """Write a workload."""
    api.objects.put_at(
        Ref(kind, "shop", name), {"metadata": {"name": name, "namespace": "shop"}, "spec": spec}
    )


async def test_follows_both_kinds() -> None:
    """One without a count asks for 1; what is not there asks for nothing."""
    api = Api()
    put(api, DEPLOYMENTS, "web", replicas=20)
    put(api, STATEFUL_SETS, "db")
    async with served(api) as address, client_of(address) as client:
        view = HubView(client, ("shop",))
        async with view.followed():
            asked = [view.replicas(key) for key in (WEB, DB, Key(DEPLOYMENT, "shop", "db"))]
            assert (asked, view.missing) == ([20, 1, None], ())
            before = view.changes
    assert before == 2


async def test_tells_what_may_not_be_read() -> None:
    """A person who may not list them sees the members all the same."""
    script = Script().then(refusal(HTTPStatus.FORBIDDEN, "Forbidden", "no"))
    async with connected(script) as client:
        view = HubView(client, ())
        async with view.followed():
            assert view.missing == (
                "these credentials may not list deployments: what the hub asks for is not shown",
                "these credentials may not list statefulsets: what the hub asks for is not shown",
            )
            assert view.replicas(WEB) is None
