"""Two controllers, one Lease: one of them writes, the other takes over, and never do both.

Each has a gateway of its own, which notes what it asks for. Who leads is read from the Lease, and the
promises are judged by recorded pods.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest

from lab.fixtures.controller import SHORT, Controller
from lab.fixtures.gateway import Gateway, Request, Write
from lab.fixtures.namespaces import open_shop
from lab.fixtures.placed import POLICY, Placed, needs_placement
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.instants import Instant
from lab.sandbox.machines import Notice
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e

LEASE = "/apis/coordination.k8s.io/v1/namespaces/splitter-system/leases/splitter"
ASKED = {"splitter.io/on-demand-base": "2"}
REPLICAS, SURGE = 5, 1
DEADLINE_S = 60.0

Figure = Callable[[str, object], None]  # pytest's record_property


@dataclass
class Replica:
    """One controller behind a gateway of its own."""

    controller: Controller
    gateway: Gateway

    @property
    def said(self) -> str:
        """Return its whole log."""
        return self.controller.said()

    def leads(self, identity: str) -> bool:
        """Whether it has said that it leads under this name."""
        return bool(identity) and f"leading as {identity}" in self.said

    @property
    def asked(self) -> list[Write | str]:
        """Return everything it has asked for that is no read, but for the Lease."""
        others = [line for line in self.gateway.others if "/leases" not in line and "reviews" not in line]
        return [*self.gateway.writes, *others]


class Pair:
    """Two replicas, one of which leads."""

    def __init__(self, sandbox: Sandbox, replicas: tuple[Replica, Replica], figure: Figure) -> None:
        self._sandbox = sandbox
        self._figure = figure
        self.replicas = replicas

    @property
    def holder(self) -> str:
        """Return the identity in the Lease; empty: nobody's."""
        lease = self._sandbox.api.find(LEASE)
        return str(lease["spec"].get("holderIdentity") or "") if lease is not None else ""

    @property
    def leader(self) -> Replica | None:
        """Return who leads."""
        holder = self.holder
        return next((one for one in self.replicas if one.leads(holder)), None)

    def roles(self) -> tuple[Replica, Replica]:
        """Wait until one leads and the other stands by, and return them in this order."""
        leader = wait_until(lambda: self.leader, what="a leader", deadline_s=DEADLINE_S)
        [standby] = [one for one in self.replicas if one is not leader]
        return leader, standby

    def wait_led_by(self, replica: Replica, since: Instant) -> None:
        """Wait until it leads."""
        wait_until(lambda: self.leader is replica, what="the other one to lead", deadline_s=DEADLINE_S)
        self.tell("the other leads", since)

    def ended(self, since: Instant) -> list[str]:
        """Return the members that the two have ended since then, by eviction or deletion."""
        return [
            write.name
            for replica in self.replicas
            for write in replica.gateway.writes
            if write.kind == "pods"
            and (write.rest.endswith("/eviction") or write.method == "DELETE")
            and not write.name.endswith("placeholder")
            and write.status < HTTPStatus.BAD_REQUEST
            and write.sent.monotonic_s > since.monotonic_s
        ]

    def tell(self, what: str, since: Instant) -> None:
        """Note how long something took: a figure, and no claim."""
        self._figure(f"{what} after, s", Instant.now().monotonic_s - since.monotonic_s)

    def check(self) -> None:
        """Raise when a controller that should run does not."""
        for one in self.replicas:
            one.controller.check()


@pytest.fixture
def pair(
    sandbox: Sandbox,
    controller: Controller,
    fleet: Fleet,
    tmp_path_factory: pytest.TempPathFactory,
    record_property: Figure,
) -> Iterator[Pair]:
    """Yield two replicas; the shared controller rests meanwhile."""
    assert fleet.names("spot")
    account = sandbox.service_account_kubeconfig("splitter-system", "splitter")
    if controller.running:
        controller.stop()
    homes = [tmp_path_factory.mktemp(name) for name in ("one", "two")]
    with Gateway(account) as first, Gateway(account) as second:
        replicas = (_replica(first, account, homes[0]), _replica(second, account, homes[1]))
        pair = Pair(sandbox, replicas, record_property)
        try:
            for one in pair.replicas:
                one.controller.start()
            yield pair
        finally:
            for one in pair.replicas:
                one.controller.end()
            sandbox.api.delete(LEASE, missing_ok=True)
            controller.start()


def _replica(gateway: Gateway, account: Path, home: Path) -> Replica:
    assert account.exists()
    settings = {**SHORT, "LEADER_ELECTION": "on"}
    return Replica(Controller(gateway.kubeconfig(home / "kubeconfig"), home, settings), gateway)


@pytest.fixture
def shop(sandbox: Sandbox, pair: Pair) -> Iterator[Shop]:
    """Yield a namespace with `web`, not split."""
    for shop in open_shop(sandbox, pair.replicas[0].controller):
        shop.check = pair.check
        shop.deploy(replicas=REPLICAS, surge=SURGE, annotations=ASKED, ready_after="1s")
        yield shop


def half_way(shop: Shop) -> None:
    """Begin to split, and return when some replicas have moved and most have not."""
    shop.label()
    shop.until(lambda: sum(shop.twins() or (0, 0)) >= 2, "half of the way")


def wait_until_reconciling(replica: Replica, before: int) -> None:
    """Wait until a replica reconciles once more than it has before."""
    wait_until(
        lambda: replica.said.count("reconciling:") > before,
        what="the other to reconcile",
        deadline_s=DEADLINE_S,
    )


def wait_until_looked(replica: Replica) -> None:
    """Wait until a replica has looked at the Lease once more."""
    look = Request("GET", LEASE, watches=False, status=HTTPStatus.OK)
    replica.gateway.requests.clear()
    wait_until(lambda: look in replica.gateway.requests, what="a look at the Lease", deadline_s=DEADLINE_S)


def is_no_write_conflict(shop: Shop) -> bool:
    """Whether nobody took the other's writes for a foreign hand's."""
    shop.wait_posted()
    reported = [note for reason in ("ForeignWrite", "Conflict", "Drift") for note in shop.events(reason)]
    return not reported and not shop.status().get("writeConflicts") and not shop.status().get("conflict")


class TestKilled:
    def test_again_and_again(self, pair: Pair, shop: Shop, fleet: Fleet) -> None:
        """The leader dies half-way through a take-over, at a notice, at a loss: the other goes on."""
        leader, standby = pair.roles()
        with shop.watch() as watched:
            half_way(shop)
            began = Instant.now()
            leader.controller.kill()
            pair.wait_led_by(standby, began)
            shop.wait_split(on_demand=2, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
            self.at_a_notice(*self.roles_again(pair, leader), pair, shop, fleet)
            assert watched.lowest() >= REPLICAS
        leader, standby = self.roles_again(pair, standby)
        began = Instant.now()
        leader.controller.kill()
        fleet.kill(fleet.names("spot"))
        shop.until(lambda: shop.shape().on_demand >= REPLICAS, "everything to serve from on-demand")
        pair.tell("killed at a loss; covered", began)
        assert pair.leader is standby
        assert is_no_write_conflict(shop)

    @staticmethod
    def at_a_notice(leader: Replica, standby: Replica, pair: Pair, shop: Shop, fleet: Fleet) -> None:
        """Kill it just when a notice comes: the other has moved what is doomed before the node goes."""
        nodes = [node for node in shop.nodes() if node.startswith("spot")]
        doomed = max(nodes, key=nodes.count)
        began = Instant.now()
        leader.controller.kill()
        fleet.notice(doomed, Notice.TAINT)
        shop.until(lambda: shop.available_off(doomed) >= REPLICAS, f"{REPLICAS} replicas beside {doomed}")
        pair.tell("killed at a notice; covered", began)
        assert pair.leader is standby
        fleet.kill(doomed)
        shop.wait_split(on_demand=2, spot=3)
        fleet.restore(doomed)

    @staticmethod
    def roles_again(pair: Pair, dead: Replica) -> tuple[Replica, Replica]:
        """Start the dead one again, and return who leads and who stands by."""
        stood_by = dead.said.count("standing by")
        dead.controller.start()
        wait_until(
            lambda: dead.said.count("standing by") > stood_by, what="it to stand by", deadline_s=DEADLINE_S
        )
        leader, standby = pair.roles()
        assert standby is dead
        return leader, standby


class TestStopped:
    def test_to_and_fro(self, pair: Pair, shop: Shop) -> None:
        """Stopped cleanly half-way, it leaves in good order, and the other goes on; and back."""
        with shop.watch() as watched:
            half_way(shop)
            for _ in range(2):
                leader, standby = pair.roles()
                reconciling = standby.said.count("reconciling:")
                began = Instant.now()
                assert leader.controller.stop() == 0
                assert pair.leader is not leader  # it has released the Lease: nobody waits for its end
                pair.tell("stopped; gone", began)
                wait_until_reconciling(standby, reconciling)
                pair.tell("stopped; the other reconciles", began)
                assert pair.leader is standby
                leader.controller.start()
            shop.wait_split(on_demand=2, spot=3)
            assert watched.lowest() >= REPLICAS
            assert watched.highest() <= REPLICAS + SURGE
        assert is_no_write_conflict(shop)


class TestPaused:
    def test_wakes_up(self, pair: Pair, shop: Shop) -> None:
        """Stopped in its tracks and woken when another leads, it writes nothing and stands by."""
        leader, standby = pair.roles()
        with shop.watch() as watched:
            half_way(shop)
            leader.controller.pause()
            began = Instant.now()
            pair.wait_led_by(standby, began)
            asked = len(leader.asked)
            shop.until(lambda: shop.twins() == (2, 3), "the other to go on")
            shop.scale(REPLICAS + 1)  # something to do for both
            leader.controller.resume()
            wait_until(
                lambda: "not leading any more" in leader.said and leader.said.count("standing by") >= 1,
                what="the old leader to stand by",
                deadline_s=DEADLINE_S,
            )
            shop.wait_split(on_demand=2, spot=4)
            assert leader.asked[asked:] == []
            assert pair.leader is standby
            assert watched.lowest() >= REPLICAS
        assert is_no_write_conflict(shop)

    def test_wakes_up_before_anybody_leads(self, pair: Pair, shop: Shop) -> None:
        """Paused for less than its lease lasts, it goes on as if nothing had been.

        The other writes nothing and tells nothing all the time, and is ready.
        """
        leader, standby = pair.roles()
        half_way(shop)
        shop.wait_split(on_demand=2, spot=3)
        assert len(leader.asked) > 10
        assert standby.asked == []
        shop.until(lambda: "standing by" in standby.said, "the other to say that it stands by")
        leader.controller.pause()
        for _ in range(3):  # longer than it takes to renew, shorter than the Lease
            wait_until_looked(standby)
        leader.controller.resume()
        shop.scale(REPLICAS + 1)
        shop.wait_split(on_demand=2, spot=4)
        assert pair.leader is leader
        assert standby.asked == []
        assert "reconciled" not in standby.said


def hanging(gateway: Gateway) -> Callable[[], None]:
    """Let nothing pass any more, and return what ends that."""
    gateway.struck.set()
    return gateway.reopen


def refusing(gateway: Gateway) -> Callable[[], None]:
    """Refuse connections, and return what ends that."""
    gateway.refuse()
    return lambda: gateway.refuse(refused=False)


@needs_placement
class TestPlaced:
    """A StatefulSet whose members move where they are."""

    @pytest.fixture(autouse=True)
    def policy(self, sandbox: Sandbox) -> Iterator[None]:
        """Have the API server place pods."""
        sandbox.kubectl("apply", "-f", POLICY)
        yield
        sandbox.kubectl("delete", "-f", POLICY)

    def test_pauses_at_an_end(self, pair: Pair, shop: Shop, fleet: Fleet) -> None:
        """The leader stops in its tracks when it has ended a member, and wakes when another leads.

        That one waits for the member before it ends the next; each is ended once, whoever leads.
        """
        leader, standby = pair.roles()
        db = Placed(shop)
        db.create(5)
        db.label()
        db.wait_placed([0, 1, 2], [3, 4])
        before = db.uids()
        with db.watch() as watched:
            fleet.notice(fleet.names("spot"), Notice.TAINT)
            shop.until(lambda: pair.ended(watched.since), "the first member to be ended")
            leader.controller.pause()
            pair.wait_led_by(standby, Instant.now())
            asked = len(leader.asked)
            leader.controller.resume()
            db.wait_placed([0, 1, 2, 3, 4], [])
            wait_until(
                lambda: "not leading any more" in leader.said, what="it to stand by", deadline_s=DEADLINE_S
            )
            assert watched.lowest() >= 4
        assert sorted(pair.ended(watched.since)) == ["db-3", "db-4"]
        assert leader.asked[asked:] == []
        assert {name for name, uid in db.uids().items() if before[name] != uid} == {"db-3", "db-4"}


class TestCutOff:
    @pytest.mark.parametrize("trouble", [hanging, refusing])
    def test_the_leader(
        self, pair: Pair, shop: Shop, fleet: Fleet, trouble: Callable[[Gateway], Callable[[], None]]
    ) -> None:
        """A leader whose API server hangs or refuses is replaced, stands by, and leads again when needed."""
        leader, standby = pair.roles()
        with shop.watch() as watched:
            half_way(shop)
            began = Instant.now()
            back = trouble(leader.gateway)
            pair.wait_led_by(standby, began)
            shop.wait_split(on_demand=2, spot=3)
            asked = len(leader.asked)
            wait_until(
                lambda: "not leading any more: the lease was not renewed within 8 s" in leader.said,
                what="the leader to give up by itself",
                deadline_s=DEADLINE_S,
            )
            back()
            wait_until(
                lambda: f"standing by: {pair.holder} leads" in leader.said,
                what="it to stand by",
                deadline_s=DEADLINE_S,
            )
            assert leader.asked[asked:] == []
            # What it missed meanwhile it knows when it leads again: its watches were cut off in silence.
            nodes = [node for node in shop.nodes() if node.startswith("spot")]
            doomed = max(nodes, key=nodes.count)
            began = Instant.now()
            assert standby.controller.stop() == 0
            fleet.notice(doomed, Notice.TAINT)
            shop.until(lambda: shop.available_off(doomed) >= REPLICAS, f"{REPLICAS} replicas beside {doomed}")
            pair.tell("led again; covered", began)
            assert pair.leader is leader
            assert watched.lowest() >= REPLICAS
        assert is_no_write_conflict(shop)
