"""Reads what a maintainer needs for an issue: the installation, its logs, and what it has split.

`plugin.cli.bundle` calls `read_bundle` once. Each part is read by itself: one that may not be read, or is not
there, says why, and the others are read all the same. Secrets are never asked for. Nothing here cuts values
out of what is read: `plugin.report.bundle` does that before anything is written.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from splitter.core.labels_annotations import LABEL_SPLIT
from splitter.core.names import DEPLOYMENT, STATEFUL_SET
from splitter.kube import paths
from splitter.kube.client import ApiError, Client, Json
from splitter.kube.lease import NAME

CONTROLLER_SELECTOR = "app.kubernetes.io/name=splitter"
_METRICS_PORT = 8081
_PAGE = 500  # objects of one request


@dataclass(slots=True)
class BundleParts:
    """What was read, by part, and why each other part was not."""

    objects: dict[str, list[Json]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    """By pod; `<pod>-previous` is that of a container which has ended."""
    metrics: dict[str, str] = field(default_factory=dict)
    leader: str = ""
    """The pod that holds the Lease; empty where nobody does or it could not be read."""
    failures: dict[str, str] = field(default_factory=dict)


async def read_bundle(
    client: Client, installation: str, namespaces: tuple[str, ...], log_lines: int
) -> BundleParts:
    """Read everything; what cannot be read is in `failures`, with the API server's message.

    `installation` is the namespace of the controller, `namespaces` those of the Splits; none means all.
    """
    reading = _Reading(client, BundleParts(), installation, namespaces)
    await reading.controller()
    for name, query in reading.pods().items():
        await reading.note(f"logs/{name}", reading.log(name, query | {"tailLines": str(log_lines)}))
    for pod in reading.parts.objects.get("pods", ()):
        await reading.note(f"metrics/{pod['metadata']['name']}", reading.metrics(pod))
    await reading.workloads()
    return reading.parts


@dataclass(frozen=True, slots=True)
class _Reading:
    client: Client
    parts: BundleParts
    installation: str
    namespaces: tuple[str, ...]

    async def controller(self) -> None:
        """Read the API server's version, the controller's Deployment, settings, pods and Lease."""
        own = self.installation
        await self.one("version", paths.ResourcePath("/version"))
        await self.all("deployment", [paths.workloads(DEPLOYMENT, own)], selector=CONTROLLER_SELECTOR)
        await self.all("pods", [paths.pods(own)], selector=CONTROLLER_SELECTOR)
        await self.one("lease", paths.leases(own).of(NAME))
        for raw in self.parts.objects.get("lease", ()):
            holder = str((raw.get("spec") or {}).get("holderIdentity") or "")
            self.parts.leader = holder.partition("_")[0]
        if "deployment" in self.parts.objects and not self.parts.objects["deployment"]:
            self.parts.failures["deployment"] = (
                f"no Deployment with the label {CONTROLLER_SELECTOR} is in the namespace {own}; name that of"
                " the installation with -n"
            )
        for name in _config_maps(self.parts.objects.get("deployment", [])):
            await self.one("settings", paths.config_maps(own).of(name))

    async def workloads(self) -> None:
        """Read the Splits, what carries splitter's label, and the Events."""
        spaces = self.namespaces or ("",)
        await self.all("splits", [paths.splits(space) for space in spaces])
        await self.all(
            "deployments", [paths.workloads(DEPLOYMENT, space) for space in spaces], selector=LABEL_SPLIT
        )
        await self.all(
            "statefulsets", [paths.workloads(STATEFUL_SET, space) for space in spaces], selector=LABEL_SPLIT
        )
        await self.all("replicasets", [paths.replica_sets(space) for space in spaces], selector=LABEL_SPLIT)
        namespaces = (
            spaces if spaces == ("",) or self.installation in spaces else (*spaces, self.installation)
        )
        await self.all("events", [paths.events(space) for space in namespaces])

    def pods(self) -> dict[str, dict[str, str]]:
        """Return whose log to read and how, the leader's first; a restarted container has an earlier one."""
        logs: dict[str, dict[str, str]] = {}
        running = self.parts.objects.get("pods", [])
        for pod in sorted(running, key=lambda one: one["metadata"]["name"] != self.parts.leader):
            name = str(pod["metadata"]["name"])
            logs[name] = {}
            statuses = (pod.get("status") or {}).get("containerStatuses") or ()
            if any(one.get("restartCount") for one in statuses):
                logs[f"{name}-previous"] = {"previous": "true"}
        return logs

    async def log(self, name: str, query: dict[str, str]) -> None:
        """Read the last lines of one container's log."""
        pod = name.removesuffix("-previous") if "previous" in query else name
        self.parts.logs[name] = await self.client.text(paths.pods(self.installation).of(pod, "log"), **query)

    async def metrics(self, pod: Json) -> None:
        """Read one pod's metrics through the API server."""
        ports = [
            port
            for container in pod["spec"]["containers"]
            for port in container.get("ports") or ()
            if port.get("name") == "metrics"
        ]
        port = int(ports[0]["containerPort"]) if ports else _METRICS_PORT
        name = str(pod["metadata"]["name"])
        self.parts.metrics[name] = await self.client.text(paths.pod_metrics(self.installation, name, port))

    async def one(self, part: str, path: paths.ResourcePath) -> None:
        """Read one object."""

        async def read() -> None:
            self.parts.objects[part] = [await self.client.get(path)]

        await self.note(part, read())

    async def all(self, part: str, where: list[paths.ResourcePath], selector: str = "") -> None:
        """Read collections; of one that cannot be read, the others are kept."""
        query = {"labelSelector": selector} if selector else {}
        for path in where:

            async def read(path: paths.ResourcePath = path) -> None:
                async for page in self.client.pages(path, _PAGE, **query):
                    self.parts.objects.setdefault(part, []).extend(page.get("items") or ())
                self.parts.objects.setdefault(part, [])

            await self.note(f"{part} in {path.namespace}" if len(where) > 1 else part, read())

    async def note(self, part: str, reading: Awaitable[None]) -> None:
        """Await one part, and note why it could not be read."""
        try:
            await reading
        except ApiError as error:
            self.parts.failures[part] = _why(error)


def _why(error: ApiError) -> str:
    known: dict[int, Callable[[ApiError], str]] = {
        0: lambda failed: f"no answer: {failed.message}",
        HTTPStatus.NOT_FOUND: lambda failed: f"not there: {failed.message}",
        HTTPStatus.FORBIDDEN: lambda failed: f"you may not: {failed.message}",
    }
    return known.get(error.status, str)(error)


def _config_maps(deployments: list[Json]) -> list[str]:
    """Return the ConfigMap that the settings file is in: the volume is called `settings` in the manifests."""
    return [
        str(volume["configMap"]["name"])
        for raw in deployments
        for volume in raw["spec"]["template"]["spec"].get("volumes") or ()
        if volume.get("name") == "settings" and volume.get("configMap")
    ][:1]
