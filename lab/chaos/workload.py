"""The workloads of the suite behind one face, whatever their kind: what users do to them, and how they rest.

`world` acts on them, `suite` asks `wrongs`. As `lab.fixtures.shop`, from outside only: of what splitter says,
no more than the Split's state is read.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from lab.chaos.judge import PLACEHOLDER, Terms
from lab.fixtures.database import NAME as DB
from lab.fixtures.database import Database
from lab.fixtures.placed import PLACES, Placed
from lab.fixtures.shop import POOL, JsonObject, Shape, Shop
from lab.sandbox.waiting import wait_until

TEMPLATE_SET = "chaos-set"
READY_AFTER = "sandbox.splitter.io/ready-after"
SOON, NEVER = "1s", "24h"
_SPLIT_DEADLINE_S = 60.0
_HALF = 50


class Kind(StrEnum):
    """How a workload is split."""

    DEPLOYMENT = "Deployment"
    TWINS = "StatefulSet by twins"
    PLACEMENT = "StatefulSet by placement"


@dataclass(frozen=True, slots=True)
class Cast:
    """A workload of the suite: its own, and what it asks splitter for."""

    namespace: str
    least: int
    surge: int
    unavailable: int
    base: int = 0
    spot_percent: int = 100
    template: str = ""
    kind: Kind = Kind.DEPLOYMENT

    def annotations(self) -> dict[str, str]:
        """Return its policy as its user writes it; a StatefulSet takes what is the default."""
        if self.kind is not Kind.DEPLOYMENT:
            return {"splitter.io/mode": "twins"} if self.kind is Kind.TWINS else {}
        values = {"on-demand-base": str(self.base), "spot-percent": str(self.spot_percent)}
        if self.template:
            values["template"] = self.template
        return {f"splitter.io/{key}": value for key, value in values.items()}

    def division(self, replicas: int) -> tuple[int, int]:
        """Return how many are wanted on on-demand and on spot.

        50 % is halved, the odd one on on-demand; of a StatefulSet more than half is on on-demand.
        """
        if self.kind is not Kind.DEPLOYMENT:
            return replicas // 2 + 1, replicas - replicas // 2 - 1
        base = min(self.base, replicas)
        on_demand = base + (-(-(replicas - base) // 2) if self.spot_percent == _HALF else 0)
        return on_demand, replicas - on_demand


# Of a StatefulSet one member may be down for a rollout or a move, and one may be beside the others.
CAST = (
    Cast("chaos-web", least=5, surge=2, unavailable=0, base=2),
    Cast("chaos-cart", least=4, surge=0, unavailable=1, base=1),
    Cast("chaos-search", least=4, surge=1, unavailable=1, spot_percent=50, template=TEMPLATE_SET),
    Cast("chaos-db", least=5, surge=0, unavailable=1, kind=Kind.TWINS),
    Cast("chaos-queue", least=5, surge=0, unavailable=1, kind=Kind.PLACEMENT),
)
PLAYED = tuple(cast for cast in CAST if PLACES or cast.kind is not Kind.PLACEMENT)
"""Those that the sandbox's Kubernetes can have: an older one places no pods."""


class Deployed:
    """A Deployment `web`; what other kinds do otherwise they say themselves."""

    name, resource = "web", "deployment"

    def __init__(self, shop: Shop) -> None:
        self.shop = shop

    def deploy(self, cast: Cast) -> None:
        """Create it, not yet split, and wait for its pods."""
        self.shop.deploy(
            replicas=cast.least,
            surge=cast.surge,
            unavailable=cast.unavailable,
            annotations=cast.annotations(),
        )

    @property
    def object(self) -> str:
        """Name it for kubectl."""
        return f"{self.resource}/{self.name}"

    def label(self) -> None:
        """Ask for the split."""
        self.shop.kubectl("label", "--overwrite", self.object, "splitter.io/split=enabled")

    def unlabel(self) -> None:
        """Ask to have it back."""
        self.shop.kubectl("label", self.object, "splitter.io/split-")

    def scale(self, replicas: int) -> None:
        """Scale as its user does."""
        self.shop.kubectl("scale", self.object, f"--replicas={replicas}")

    def annotate(self, cast: Cast) -> None:
        """Write another policy."""
        written = (f"{key}={text}" for key, text in cast.annotations().items())
        self.shop.kubectl("annotate", "--overwrite", self.object, *written)

    def image(self, number: int) -> None:
        """Roll out another image."""
        self.shop.kubectl("set", "image", self.object, f"{self.name}={self.name}:{number}")

    def ready_after(self, text: str) -> None:
        """Roll out pods that become ready after so long."""
        template = {"metadata": {"annotations": {READY_AFTER: text}}}
        self.shop.sandbox.api.patch(self._path, {"spec": {"template": template}})

    def twin(self, which: int) -> tuple[str, str] | None:
        """Return (kubectl's name, pool) of one of its twins; None without twins."""
        pool = ("spot", "on-demand")[which % 2]
        return f"{self.resource}/{self.name}-{pool}", pool

    @property
    def split_name(self) -> str:
        """The name of its Split."""
        return self.name

    @property
    def template(self) -> JsonObject:
        """Its pod template, as it was last asked for."""
        result: JsonObject = self._raw()["spec"]["template"]
        return result

    def pods(self) -> list[JsonObject]:
        """Return its pods, without those that end and those that only hold room."""
        return [pod for pod in self.shop.pods(self.name) if PLACEHOLDER not in pod["metadata"]["labels"]]

    def wrongs(self, cast: Cast, replicas: int, image: int) -> Iterator[str]:
        """Yield what is not yet as it should be."""
        yield from self._divided(cast.division(replicas))
        if strays := self.shop.strays():
            yield f"nobody owns {', '.join(sorted(strays))}"
        yield from self._same(image)
        pods = self.pods()
        if others := [pod["metadata"]["name"] for pod in pods if POOL not in pod["metadata"]["labels"]]:
            yield f"no twin's pods: {', '.join(others)}"

    def _divided(self, wanted: tuple[int, int]) -> Iterator[str]:
        if (twins := self._twins()) != wanted:
            yield f"the twins ask for {twins}, wanted are {wanted}"
        yield from self._stands(wanted)

    def _stands(self, wanted: tuple[int, int]) -> Iterator[str]:
        shape = self.shop.shape(self.name)
        if shape != Shape(*wanted, sum(wanted)):
            yield f"{shape}, wanted are {wanted}"

    def _same(self, image: int) -> Iterator[str]:
        images = {pod["spec"]["containers"][0]["image"] for pod in self.pods()}
        if images != {f"{self.name}:{image}"}:
            yield f"runs {images}, wanted is {self.name}:{image}"
        status = self.shop.status(self.split_name)
        if status.get("state") != "Steady":
            yield f"the Split says {status.get('state')} {status.get('reason')}: {status.get('message')}"

    def _twins(self) -> tuple[int, int] | None:
        return self.shop.twins()

    def _raw(self) -> JsonObject:
        return self.shop.sandbox.api.get(self._path)

    @property
    def _path(self) -> str:
        return f"/apis/apps/v1/namespaces/{self.shop.namespace}/{self.resource}s/{self.name}"


class Twinned(Deployed):
    """A StatefulSet `db` that has twins."""

    name, resource = DB, "statefulset"

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop)
        self._database = Database(shop)

    def deploy(self, cast: Cast) -> None:
        """Create it with its Service."""
        self._database.deploy(cast.least, annotations=cast.annotations())

    def scale(self, replicas: int) -> None:
        """Scale as its user does: the Split, where there is one (docs/how-to/split-a-statefulset.md).

        A StatefulSet that stands at 0 because splitter has it gets its Split in a moment.
        """
        if self._is_plain():
            if self._raw()["spec"].get("replicas") != replicas:
                super().scale(replicas)
            return
        wait_until(
            lambda: self._database.split() is not None,
            what=f"the Split of {self.shop.namespace}",
            deadline_s=_SPLIT_DEADLINE_S,
        )
        self.shop.kubectl("scale", f"split/{self.split_name}", f"--replicas={replicas}")

    @property
    def split_name(self) -> str:
        """The name of its Split."""
        return f"{self.name}-sts"

    def wrongs(self, cast: Cast, replicas: int, image: int) -> Iterator[str]:
        """Yield what is not yet as it should be."""
        yield from self._divided(cast.division(replicas))
        if self._raw()["spec"]["replicas"] != 0:
            yield "the source does not stand at 0"
        yield from self._same(image)

    def _is_plain(self) -> bool:
        annotations: dict[str, Any] = self._raw()["metadata"].get("annotations", {})
        return "splitter.io/replicas" not in annotations

    def _twins(self) -> tuple[int, int] | None:
        return self._database.twins()


class Members(Deployed):
    """A StatefulSet `db` whose own pods are placed."""

    name, resource = DB, "statefulset"

    def __init__(self, shop: Shop) -> None:
        super().__init__(shop)
        self._placed = Placed(shop)

    def deploy(self, cast: Cast) -> None:
        """Create it with its Service."""
        self._placed.create(cast.least, cast.annotations())

    def twin(self, which: int) -> tuple[str, str] | None:
        """Return None: it has no twins."""
        del which
        return None

    @property
    def split_name(self) -> str:
        """The name of its Split."""
        return f"{self.name}-sts"

    def wrongs(self, cast: Cast, replicas: int, image: int) -> Iterator[str]:
        """Yield what is not yet as it should be."""
        on_demand, _ = cast.division(replicas)
        wanted = {ordinal: "on-demand" if ordinal < on_demand else "spot" for ordinal in range(replicas)}
        if (ordinals := self._placed.ordinals()) != list(range(on_demand)):
            yield f"the ordinals of on-demand are {ordinals}"
        if (stand := self._placed.pools()) != wanted:
            yield f"its members stand on {stand}"
        if held := self._placed.placeholders():
            yield f"{len(held)} placeholders are left"
        yield from self._same(image)


FACES: dict[Kind, type[Deployed]] = {
    Kind.DEPLOYMENT: Deployed,
    Kind.TWINS: Twinned,
    Kind.PLACEMENT: Members,
}


@dataclass
class Part:
    """One workload as it is now, and between what it was in this round."""

    cast: Cast
    face: Deployed
    replicas: int
    least: int = 0
    most: int = 0
    rolled: bool = False
    image: int = 1
    ready_after: str = SOON

    @property
    def shop(self) -> Shop:
        """Its namespace."""
        return self.face.shop

    def opens(self) -> None:
        """A round begins."""
        self.least = self.most = self.replicas
        self.rolled = False

    def scale(self, replicas: int) -> None:
        """Scale it as its user does."""
        self.least, self.most = min(self.least, replicas), max(self.most, replicas)
        self.replicas = replicas
        self.face.scale(replicas)

    def roll(self) -> None:
        """Roll out the next image."""
        self.image += 1
        self.rolled = True
        self.face.image(self.image)

    def starts(self, ready_after: str) -> None:
        """Roll out pods that become ready after so long."""
        self.rolled = True
        self.ready_after = ready_after
        self.face.ready_after(ready_after)

    def policy(self, base: int, spot_percent: int) -> None:
        """Write another policy; of a StatefulSet none."""
        if self.cast.kind is Kind.DEPLOYMENT:
            self.cast = replace(self.cast, base=base, spot_percent=spot_percent)
            self.face.annotate(self.cast)

    def mend(self) -> None:
        """Ask for all of it again: what was in the way of a fault may not have been carried out."""
        self.face.label()
        self.face.scale(self.replicas)
        template = self.face.template
        if template["metadata"]["annotations"].get(READY_AFTER) != self.ready_after:
            self.face.ready_after(self.ready_after)
        if template["spec"]["containers"][0]["image"] != f"{self.face.name}:{self.image}":
            self.face.image(self.image)

    def unsteady(self) -> str:
        """Return what is not yet as it should be; nothing when it rests."""
        wrongs = self.face.wrongs(self.cast, self.replicas, self.image)
        return next((f"{self.cast.namespace}: {what}" for what in wrongs), "")

    @property
    def terms(self) -> Terms:
        """What is promised to it in this round."""
        # As in any rollout: a new pod may be seen a millisecond before an old one goes.
        return Terms(
            self.cast.namespace,
            self.least,
            self.most,
            self.cast.surge,
            self.cast.unavailable,
            spare=int(self.rolled),
            quorum=self.cast.kind is Kind.PLACEMENT,
        )
