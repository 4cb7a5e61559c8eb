"""A template set in a ConfigMap beside splitter, as its author writes it, and what runs by it."""

import json
from typing import Any

from lab.fixtures.shop import JsonObject, Shop
from splitter.bundled import bundled_path

HOME = "splitter-system"
CONFIG_MAPS = f"/api/v1/namespaces/{HOME}/configmaps"
ON_DEMAND, SPOT = (
    (bundled_path("templates") / "default" / "deployment" / f"{pool}.yaml.j2").read_text()
    for pool in ("on-demand", "spot")
)
# Where a set of its own says something else than the default one.
PODS = "spec: {{ pod | require_node_affinity(presets.spot_terms) }}"


def spot_with(change: JsonObject) -> str:
    """Return a spot template that lays a change over the pods' spec."""
    return SPOT.replace(
        PODS, PODS.replace(" }}", f" | merge({json.dumps(change)}) }}}}").replace("\n", " "), 1
    )


def with_grace(seconds: int) -> str:
    """Return a spot template whose pods have another termination grace, by which one knows it."""
    return spot_with({"terminationGracePeriodSeconds": seconds})


class TemplateSet:
    """One set in a ConfigMap beside splitter, as its author writes it."""

    def __init__(self, shop: Shop, name: str) -> None:
        self.name = name
        self._api = shop.sandbox.api

    def write(
        self,
        spot: str | None = with_grace(7),
        *,
        namespaces: str | None = "shop-*",
        label: str = "enabled",
        **fields: Any,  # noqa: ANN401 (fields of a ConfigMap)
    ) -> None:
        """Write it whole; without `spot`, that key is missing."""
        metadata: JsonObject = {"name": self.name, "namespace": HOME}
        metadata["labels"] = {"splitter.io/template-set": label}
        if namespaces is not None:
            metadata["annotations"] = {"splitter.io/namespaces": namespaces}
        texts = {"deployment.on-demand.yaml.j2": ON_DEMAND, "deployment.spot.yaml.j2": spot}
        body: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        body["data"] = {key: text for key, text in texts.items() if text is not None}
        for key, value in fields.items():
            body[key] = {**body.get(key, {}), **value}
        # Replaced, not applied: an apply would keep the whole text a second time, in an annotation.
        self.delete()
        self._api.create(CONFIG_MAPS, body)

    def change(self, spot: str) -> None:
        """Change the spot template where it is."""
        self._api.patch(f"{CONFIG_MAPS}/{self.name}", {"data": {"deployment.spot.yaml.j2": spot}})

    def allow(self, namespaces: str) -> None:
        """Name the namespaces that may use it."""
        written = {"metadata": {"annotations": {"splitter.io/namespaces": namespaces}}}
        self._api.patch(f"{CONFIG_MAPS}/{self.name}", written)

    def delete(self) -> None:
        """Take it away, where it is there."""
        self._api.delete(f"{CONFIG_MAPS}/{self.name}", missing_ok=True)

    def events(self) -> list[str]:
        """Return the notes of splitter's Events about it."""
        collected = self._api.list(f"/apis/events.k8s.io/v1/namespaces/{HOME}/events")
        return [raw["note"] for raw in collected if raw["regarding"]["name"] == self.name]


class Running:
    """The pods and the twins' specs of a moment, to compare with now."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._before = self._now()

    def verify(self) -> None:
        """No pod was replaced, and no twin written."""
        assert self._now() == self._before

    def _now(self) -> tuple[set[str], dict[str, int]]:
        twins = {name: self._shop.deployment(name) for name in ("web-on-demand", "web-spot")}
        generations = {name: raw["metadata"]["generation"] for name, raw in twins.items()}
        return self._shop.pod_uids(), generations


NO_IMAGE = spot_with({"containers": [{"name": "more"}]})

REPLICAS, SURGE = 3, 2
LINE = SPOT.splitlines().index(f"    {PODS}") + 1
SYNTAX = SPOT.replace(PODS, "spec: {{ pod | }}")


def deploy(shop: Shop, own_set: TemplateSet) -> None:
    """Apply a Deployment that asks for the set."""
    asked = {"splitter.io/on-demand-base": "1", "splitter.io/template": own_set.name}
    shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=asked)


def twin(shop: Shop) -> str | None:
    """Return the UID of the spot twin, None while there is none."""
    result = shop.sandbox.api.find(f"/apis/apps/v1/namespaces/{shop.namespace}/deployments/web-spot")
    return None if result is None else str(result["metadata"]["uid"])


def grace_of(shop: Shop, twin: str = "web-spot") -> int:
    """Return the termination grace that a twin's template has now."""
    seconds: int = shop.deployment(twin)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    return seconds


def wait_held(shop: Shop, reason: str, words: str) -> None:
    """Wait until Split and Event say that web is held for a reason, with these words."""

    def says_so() -> bool:
        status = shop.status()
        return (status["state"], status["reason"]) == ("Held", reason) and words in status["message"]

    shop.until(says_so, f"{reason}: {words}")
    shop.reported(reason, words)


def wait_rolled(shop: Shop, grace: int) -> None:
    """Wait until the spot twin's pods have this termination grace."""
    shop.until(lambda: grace_of(shop) == grace, f"a grace of {grace} s in the template")
    shop.wait_split(on_demand=1, spot=2)
    shop.until(
        lambda: (
            [
                pod["spec"]["terminationGracePeriodSeconds"]
                for pod in shop.pods()
                if pod["metadata"]["name"].startswith("web-spot")
            ]
            == [grace] * 2
        ),
        f"pods with a grace of {grace} s",
    )
