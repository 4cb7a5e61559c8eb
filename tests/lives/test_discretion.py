"""A user's values are for nobody else: the log names fields, and what is quoted stays in the namespace.

The workloads of all end-to-end tests carry planted secrets, which are looked for after each test
(`lab.fixtures.planted`). Here they change, are written over, and are quoted by whoever refuses them.
"""

import json

import pytest

from lab.fixtures.planted import ANNOTATIONS, ARGUMENT, PLANTED, VARIABLE
from lab.fixtures.shop import JsonObject, Shop, manifest
from lives.policies import forbidden
from world.sandbox import Process

REPLICAS = 2
ASKED = {"splitter.io/on-demand-base": "1"}
REFUSED = "hunter2-refused"


def workload(name: str = "web", secret: str = PLANTED) -> JsonObject:
    """Return the Deployment with other secrets in the places of those that are planted everywhere."""
    text = json.dumps(manifest(name, REPLICAS, annotations=ASKED))
    content: JsonObject = json.loads(text.replace(PLANTED, secret))
    return content


@pytest.fixture
def split_shop(shop: Shop) -> Shop:
    """Return a namespace with `web`, split."""
    shop.deploy(replicas=REPLICAS, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=REPLICAS - 1)
    return shop


def lines_about(controller: Process, shop: Shop, words: str) -> list[str]:
    """Return the lines of the log about the workload that have these words."""
    lines = controller.said().splitlines()
    return [line for line in lines if f"workload={shop.namespace}/web" in line and words in line]


def test_a_change_is_told_by_its_fields(split_shop: Shop, controller: Process) -> None:
    """Another variable, argument and annotation roll both twins; the log says which fields, and no value."""
    shop, other = split_shop, f"{PLANTED}-anew"
    shop.kubectl("apply", "-f", "-", stdin=json.dumps(workload(secret=other)))
    shop.until(
        lambda: all(other in json.dumps(pod["spec"]) for pod in shop.pods()), "the new template everywhere"
    )
    shop.wait_split(on_demand=1, spot=REPLICAS - 1)
    for pool in ("on-demand", "spot"):
        [line] = lines_about(controller, shop, f"rendered anew workload={shop.namespace}/web pool={pool}")
        pod = "spec.template.spec.containers.web"
        annotation = f"spec.template.metadata.annotations.{next(iter(ANNOTATIONS))}"
        assert line.endswith(f"changes={annotation}; {pod}.args.1; {pod}.env.{VARIABLE['name']}.value")


def test_an_edit_is_told_by_its_fields(split_shop: Shop) -> None:
    """Whoever writes over a twin's value learns which field was put back, and no value."""
    shop = split_shop
    shop.kubectl("set", "env", "deployment/web-spot", f"{VARIABLE['name']}={PLANTED}-by-hand")
    field = f"spec.template.spec.containers.web.env.{VARIABLE['name']}.value"
    shop.reported("Drift", f"another client edited web-spot ({field}); put back")
    shop.wait_split(on_demand=1, spot=REPLICAS - 1)


def test_a_policy_with_words_of_its_own(shop: Shop, controller: Process) -> None:
    """Whatever a policy of somebody's makes of a value is for Split and Event, and not for the log."""
    shop.apply(workload(secret=REFUSED))
    shop.wait_rolled_out()
    words = f"nothing of this kind: {ARGUMENT.replace(PLANTED, REFUSED)}"
    with forbidden(shop, "deployments", lambda raw: not raw["metadata"]["name"].endswith("-spot"), words):
        shop.label()
        shop.says("WriteDenied", words)
        shop.reported("WriteDenied", words)
        assert lines_about(controller, shop, "denied request: …")
    assert REFUSED not in controller.said()
