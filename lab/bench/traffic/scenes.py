"""What is played, one after the other; each scene begins with new Deployments and all machines well.

A scene says what happens. What users saw of it is in its segments; nothing is judged here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.bench.traffic.stage import N, Segment, Shops
from lab.fixtures import web
from lab.sandbox import Instant

NOTICE_S = 30.0

Segments = list[Segment]


def life(shops: Shops, into: Segments) -> None:
    """Labelled, a new image, scaled up and down, given back."""
    shops.deploy()
    with shops.segment("labelled", into):
        shops.dress()
    with shops.segment("new image", into):
        shops.each(lambda shop: shop.kubectl("set", "image", "deployment/web", f"web={web.NEW}"))
        new = {web.NEW}
        shops.stage.wait(
            lambda: all(set(shop.images()) == new for shop in shops.shops.values()), "the new image"
        )
        shops.wait_standing()
    with shops.segment("scaled", into):
        shops.each(lambda shop: shop.scale(N + 2))
        shops.wait_standing(spot=6)
        shops.each(lambda shop: shop.scale(N))
        shops.wait_standing()
    with shops.segment("given back", into):
        shops.splitter.unlabel()
        shops.splitter.wait_given_back()


def drained(shops: Shops, into: Segments) -> None:
    """A notice, at once a drain of all spot machines, which go 30 s after the notice."""
    _drained("drained", shops, into)


def drained_with_budget(shops: Shops, into: Segments) -> None:
    """The same, and the user has a budget of one replica fewer."""
    shops.each(lambda shop: shop.apply(web.budget(N - 1)))
    _drained("drained, with a budget", shops, into)


def _drained(name: str, shops: Shops, into: Segments) -> None:
    shops.set_up()
    stage = shops.stage
    with shops.segment(name, into) as counts_from:
        began = stage.machines.notice(stage.spot)
        counts_from(began)
        stage.drain(stage.spot, timeout_s=NOTICE_S - 2)
        stage.pass_until(began, NOTICE_S)
        stage.machines.kill(stage.spot)
        shops.serving()


def noticed(shops: Shops, into: Segments) -> None:
    """A notice for all spot machines, which go 30 s later; nobody drains them."""
    shops.set_up()
    stage = shops.stage
    with shops.segment("notice, not drained", into) as counts_from:
        began = stage.machines.notice(stage.spot)
        counts_from(began)
        stage.pass_until(began, NOTICE_S)
        stage.machines.kill(stage.spot)
        shops.serving()


def lost(shops: Shops, into: Segments) -> None:
    """All spot machines go without notice, their Node objects too; later there are new ones."""
    shops.set_up()
    stage = shops.stage
    with shops.segment("lost, Nodes deleted", into) as counts_from:
        stage.machines.kill(stage.spot)
        counts_from(Instant.now())
        shops.serving(deadline_s=75)
    with shops.segment("return", into) as counts_from:
        counts_from(Instant.now())
        stage.machines.restore(stage.spot)
        shops.wait_standing()


def silent(shops: Shops, into: Segments) -> None:
    """All spot machines go without notice, and their Node objects stay until they are found silent."""
    shops.set_up()
    stage = shops.stage
    with shops.segment("lost, Nodes left", into) as counts_from:
        stage.machines.lose(stage.spot)

        def noticed() -> bool:
            collected = [stage.sandbox.api.get(f"/api/v1/nodes/{name}") for name in stage.spot]
            return not any(
                each["status"] == "True"
                for raw in collected
                for each in raw["status"]["conditions"]
                if each["type"] == "Ready"
            )

        stage.wait(noticed, "the Nodes to turn Unknown", 60)
        counts_from(Instant.now())
        shops.serving(deadline_s=60)


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene by its name on the command line."""

    key: str
    play: Callable[[Shops, Segments], None]


SCENES: Sequence[Scene] = (
    Scene("life", life),
    Scene("drained", drained),
    Scene("budget", drained_with_budget),
    Scene("noticed", noticed),
    Scene("lost", lost),
    Scene("silent", silent),
)
