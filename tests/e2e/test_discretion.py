"""A user's values are for nobody else: the log names fields, and what is quoted stays in the namespace.

The workloads of all end-to-end tests carry planted secrets, which are looked for after each test
(`lab.fixtures.planted`). Here they change, are written over, and are quoted by whoever refuses them.
"""

import json
from collections.abc import Iterator

import pytest

from e2e.support.template_sets import PODS, SPOT, TemplateSet
from lab.fixtures.controller import Controller
from lab.fixtures.planted import PLANTED
from lab.fixtures.shop import JsonObject, Shop, manifest

pytestmark = pytest.mark.e2e

REPLICAS = 2
ASKED = {"splitter.io/on-demand-base": "1"}
# Not what is planted everywhere: an API server may quote it where its owner looks.
REFUSED = "hunter2-refused"
KEY = "example.com/refused"
# A field that takes few words gets the value of an annotation.
QUOTING = SPOT.replace(
    PODS,
    PODS.replace(
        " }}", f' | merge({{"dnsPolicy": source.spec.template.metadata.annotations["{KEY}"]}}) }}}}'
    ),
)


def workload(name: str = "web", secret: str = PLANTED) -> JsonObject:
    """Return the Deployment with other secrets in the places of those that are planted everywhere."""
    text = json.dumps(manifest(name, REPLICAS, annotations=ASKED))
    content: JsonObject = json.loads(text.replace(PLANTED, secret))
    return content


@pytest.fixture
def quoting(shop: Shop) -> Iterator[TemplateSet]:
    """Yield a template set that puts a value of its source where the API server refuses it."""
    template_set = TemplateSet(shop, "quoting")
    template_set.write(QUOTING)
    yield template_set
    template_set.delete()


def lines_about(controller: Controller, shop: Shop, words: str) -> list[str]:
    """Return the lines of the log about the workload that have these words."""
    lines = controller.said().splitlines()
    return [line for line in lines if f"workload={shop.namespace}/web" in line and words in line]


def test_a_value_that_is_refused(shop: Shop, controller: Controller, quoting: TemplateSet) -> None:
    """The API server quotes a value: its owner reads that in Split and Event, the log has the field only."""
    body = manifest("web", REPLICAS, annotations={**ASKED, "splitter.io/template": quoting.name})
    body["spec"]["template"]["metadata"]["annotations"][KEY] = REFUSED
    shop.apply(body)
    shop.wait_rolled_out()
    shop.label()
    quoted = f'spec.template.spec.dnsPolicy: Unsupported value: "{REFUSED}"'
    assert len(shop.says("TemplateInvalid", quoted)["message"]) <= 1024
    shop.reported("TemplateInvalid", quoted)
    assert lines_about(controller, shop, "spec.template.spec.dnsPolicy: Unsupported value: …")
    assert REFUSED not in controller.said()
