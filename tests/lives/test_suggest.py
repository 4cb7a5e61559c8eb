"""What `splitter suggest` says of a workload is what becomes of it when its commands are typed."""

import json
from typing import Any

from e2e.support.guard import budget
from e2e.support.refusals import REPLICAS, Untouched
from e2e.support.terminal import reported
from lab.fixtures.shop import Shop
from lives.terminal import Terminal


def test_its_commands_do_what_it_says(shop: Shop, admin: Terminal) -> None:
    """It writes nothing; typed as they are, its two commands split the workload as it has told."""
    shop.deploy(replicas=REPLICAS)
    shop.apply(budget("calm", maxUnavailable=None, minAvailable=2))
    before = Untouched(shop)
    answer = reported(admin.splitter("suggest", "-n", shop.namespace, "-l", "app=web", "-o", "json"))
    (content,) = json.loads(answer)["workloads"]
    before.verify()
    assert (content["name"], content["eligible"], content["replicas"]) == ("web", True, REPLICAS)
    assert content["why"] == "PodDisruptionBudget calm says minAvailable 2, so 2 stay on on-demand"
    wanted: dict[str, Any] = content["wanted"]
    assert wanted == {"onDemand": 2, "spot": 1}
    assert content["startSeconds"] is not None
    commands = [command.removeprefix("kubectl ").split() for command in content["commands"]]
    assert len(commands) == 2
    for command in commands:
        shop.sandbox.kubectl(*command)
    shop.wait_split(on_demand=2, spot=1)
    none = reported(admin.splitter("suggest", "-n", shop.namespace))
    assert none == "no workload without the label is here\n"
