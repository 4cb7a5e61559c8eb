"""A StatefulSet and its headless Service: what a user does to them, and what can be seen from outside.

As `shop` for Deployments, whose namespace it shares; nothing here reads what splitter says about itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from e2e.support.planted import ANNOTATIONS, in_container
from e2e.support.shop import LABEL, JsonObject, Shape, Shop, Snapshot, Watched

NAME = "db"
TWINS = ("db-on-demand", "db-spot")
BY_TWINS = {"splitter.io/mode": "twins"}


class Database:
    """The StatefulSet `db` of a namespace."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self._home = f"/apis/apps/v1/namespaces/{shop.namespace}/statefulsets"

    # --- what a user does -------------------------------------------------------------------------

    def deploy(
        self,
        replicas: int = 5,
        *,
        annotations: Mapping[str, str] | None = None,
        ordered: bool = False,
        waits: bool = True,
        **spec: Any,  # noqa: ANN401 (what `manifest` takes)
    ) -> None:
        """Apply Service and StatefulSet, and wait until all is ready (kubectl cannot, with OnDelete)."""
        self.shop.apply(service())
        self.shop.apply(manifest(replicas, annotations=annotations, ordered=ordered, **spec))
        if waits:
            self.wait_rolled_out()

    def wait_rolled_out(self) -> None:
        """Wait until all its own replicas are ready, as kubectl sees it."""
        self.shop.until(lambda: is_rolled_out(self.source()), f"{NAME} to be rolled out")

    def label(self, value: str | None = "enabled") -> None:
        """Ask for the split, as `kubectl label` does."""
        self._patch({"metadata": {"labels": {LABEL: value}}}, "kubectl-label")

    def unlabel(self) -> None:
        """Ask to have it back."""
        self.label(value=None)

    def annotate(self, **policy: str) -> None:
        """Write annotations of splitter's: `spot_percent="50"` is splitter.io/spot-percent=50."""
        written = {f"splitter.io/{key.replace('_', '-')}": value for key, value in policy.items()}
        self._patch({"metadata": {"annotations": written}}, "kubectl-annotate")

    def _patch(self, patch: JsonObject, manager: str) -> None:
        self.shop.sandbox.api.patch(f"{self._home}/{NAME}", patch, field_manager=manager)

    def patch(self, body: str) -> None:
        """Change the spec, as `kubectl patch` does."""
        self.shop.kubectl("patch", "statefulset", NAME, "--type=merge", "-p", body)

    # --- what can be seen -------------------------------------------------------------------------

    def source(self) -> JsonObject:
        """Return the StatefulSet itself."""
        return self.shop.sandbox.api.get(f"{self._home}/{NAME}")

    def names(self) -> set[str]:
        """Return the names of all StatefulSets."""
        return {raw["metadata"]["name"] for raw in self.shop.sandbox.api.list(self._home)}

    def twins(self) -> tuple[int, int] | None:
        """Return the replicas asked for on the on-demand and the spot twin, None without twins."""
        return self.shop.twins(NAME, "statefulsets")

    def pods(self) -> set[str]:
        """Return the names of its pods, of all holders, terminating ones left out."""
        return {pod["metadata"]["name"] for pod in self.shop.pods(NAME)}

    def images(self) -> set[str]:
        """Return the images that its pods run."""
        return set(self.shop.images(NAME))

    def split(self) -> JsonObject | None:
        """Return the Split."""
        return self.shop.split(f"{NAME}-sts")

    def status(self) -> JsonObject:
        """Return the status of the Split, {} while there is none."""
        return self.shop.status(f"{NAME}-sts")

    def events(self, reason: str) -> list[str]:
        """Return the notes of splitter's Events about it."""
        return self.shop.events(reason, NAME)

    def snapshot(self) -> Snapshot:
        """Return what must be the same again when splitter has left."""
        raw = self.source()
        metadata = raw["metadata"]
        managers = frozenset(entry["manager"] for entry in metadata["managedFields"])
        return Snapshot(raw["spec"], metadata.get("labels", {}), metadata.get("annotations", {}), managers)

    # --- waiting ----------------------------------------------------------------------------------

    def reported(self, reason: str, text: str = "") -> str:
        """Wait for an Event of splitter's about it with this text in its note; return the note."""
        return self.shop.reported(reason, text, NAME)

    def says(self, reason: str, text: str = "") -> JsonObject:
        """Wait until the Split says this reason with this text in its message; return its status."""
        return self.shop.says(reason, text, f"{NAME}-sts")

    def wait_steady(self) -> None:
        """Wait until the Split says that all is steady, of the source as it is now."""

        def is_steady() -> bool:
            generation = self.source()["metadata"]["generation"]
            status = self.status()
            return status.get("state") == "Steady" and status.get("sourceGeneration") == generation

        self.shop.until(is_steady, f"the Split of {NAME} to say that all is steady")

    def wait_split(self, on_demand: int, spot: int) -> None:
        """Wait until the pods stand as said, all ready, none beside, and the twins ask for just that."""
        wanted = Shape(on_demand, spot, on_demand + spot)
        self.shop.until(  # the pods last: before the source is at 0 one of its own may stand for a member
            lambda: (
                self.source()["spec"]["replicas"] == 0
                and self.twins() == (on_demand, spot)
                and self.shop.shape(NAME) == wanted
            ),
            f"{NAME} to be {on_demand} on on-demand and {spot} on spot",
        )

    def wait_given_back(self) -> None:
        """Wait until nothing of splitter's is left beside it, and all its replicas are its own."""

        def is_back() -> bool:
            annotations = self.source()["metadata"].get("annotations", {})
            marks = {"splitter.io/taken-over", "splitter.io/replicas"} & annotations.keys()
            return self.split() is None and not marks and not self.names() & set(TWINS)

        self.shop.until(is_back, f"{NAME} to be given back")
        self.wait_rolled_out()

    @contextmanager
    def watch(self) -> Iterator[Watched]:
        """Record the pods."""
        with self.shop.watch(NAME) as watched:
            yield watched


def is_rolled_out(raw: JsonObject) -> bool:
    """Whether a StatefulSet has all its replicas, of its template of now, ready, and no others."""
    status, wanted = raw.get("status", {}), raw["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= raw["metadata"]["generation"]
    counts = (status.get(name, 0) for name in ("replicas", "readyReplicas"))
    one = status.get("currentRevision") == status.get("updateRevision")
    return seen and one and all(count == wanted for count in counts)


def service() -> JsonObject:
    """Return the headless Service."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": NAME},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"app": NAME},
            "ports": [{"name": "db", "port": 5432}],
        },
    }


def manifest(
    replicas: int | None,
    *,
    annotations: Mapping[str, str] | None = None,
    ordered: bool = False,
    image: str = "db:1",
    ready_after: str = "500ms",
    **spec: object,
) -> JsonObject:
    """Return the StatefulSet as a user writes it; further words are fields of its spec."""
    requests = {"cpu": "100m", "memory": "64Mi"}
    pod = {
        "terminationGracePeriodSeconds": 5,
        "containers": [{"name": "db", "image": image, "resources": {"requests": requests}, **in_container()}],
    }
    reported = {
        "sandbox.splitter.io/ready-after": ready_after,
        "sandbox.splitter.io/ends-after": "500ms",
        **ANNOTATIONS,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": NAME,
            "labels": {"app": NAME},
            "annotations": dict(BY_TWINS if annotations is None else annotations),
        },
        "spec": {
            **({} if replicas is None else {"replicas": replicas}),
            "serviceName": NAME,
            "podManagementPolicy": "OrderedReady" if ordered else "Parallel",
            "selector": {"matchLabels": {"app": NAME}},
            "template": {"metadata": {"labels": {"app": NAME}, "annotations": reported}, "spec": pod},
            **spec,
        },
    }
