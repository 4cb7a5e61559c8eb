"""With `watch_namespaces`: one that is gone or not there yet stands still, and the others do not notice."""

import pytest

from floods.process import DEPLOYMENTS, cluster, labelled, lead, now, served, standing_by
from leaping import passing
from splitter.kube.access import check_access

pytestmark = pytest.mark.slow


async def test_one_that_was_deleted(caplog: pytest.LogCaptureFixture) -> None:
    """A new leader looks after the others, says which it does not see, and follows it once it is back."""
    api = cluster("a", "b")
    async with standing_by(api, "a", "b") as operator:
        api.delete_namespace("b")
        await passing(120.0)
        await lead(operator)
        assert operator._queue.served
        assert served(api, "a", 0.0)
        assert "in namespace b until it can be seen" in caplog.text
        assert {namespace for _, namespace in operator._failing()} == {"b"}

        again_s = now()
        api.gone.clear()
        api.put(DEPLOYMENTS.format("b"), labelled("b"))
        await passing(60.0)
        assert served(api, "b", again_s)
        assert not operator._failing()


async def test_one_that_is_not_there_yet() -> None:
    """The start says it and goes on; its rights are asked for again when it can be listed."""
    api = cluster("a")
    api.gone.add("b")
    forbidden = await check_access(api, ["a", "b"], "splitter")
    assert forbidden == ("b",)
    async with standing_by(api, "a", "b", forbidden=forbidden) as operator:
        assert now() < 10.0
        await lead(operator)
        assert served(api, "a", 0.0)
        assert not served(api, "b", 0.0)
        api.gone.clear()
        api.put(DEPLOYMENTS.format("b"), labelled("b"))
        await passing(120.0)
        assert served(api, "b", 0.0)


async def test_one_that_goes_while_it_is_led() -> None:
    """Where nothing can be listed any more, nothing is written on an old view; next door it goes on."""
    api = cluster("a", "b")
    async with standing_by(api, "a", "b") as operator:
        await lead(operator)
        assert served(api, "b", 0.0)
        api.delete_namespace("b")
        await passing(300.0)
        before_s = now()
        assert operator._views.failing_for("b") is not None
        assert operator._views.failing_for("a") is None
        api.put(DEPLOYMENTS.format("a"), {**labelled("a"), "spec": {**labelled("a")["spec"], "replicas": 5}})
        await passing(30.0)
        assert served(api, "a", before_s)
        assert not served(api, "b", before_s)


async def test_all_that_are_gone_cost_little() -> None:
    """Three namespaces that are not there: under five requests a second in all."""
    api = cluster("a")
    async with standing_by(api, "a", "b", "c", "d") as operator:
        for namespace in "bcd":
            api.delete_namespace(namespace)
        await lead(operator)
        began_s = now()
        await passing(600.0)
        assert sum(api.rates(began_s).values()) < 5 * 600
