"""The election as a state machine: clock, time of day, dice and API server are the test's."""

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from splitter.kube.client import ApiError, Json
from splitter.kube.lease import Election, lease_clock
from splitter.kube.paths import ResourcePath

DURATION_S, RENEW_WITHIN_S = 12, 8.0
NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, UTC)
PATH = "/apis/coordination.k8s.io/v1/namespaces/splitter-system/leases"


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time_s = 1000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.time_s

    def pass_s(self, seconds: float) -> None:
        """Let time go by."""
        self.time_s += seconds


class Leases:
    """An API server with one Lease; it may refuse, hang, or lose answers."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.lease: Json | None = None
        self.version = 0
        self.asked: list[tuple[str, str]] = []
        self.timeouts: list[float] = []
        self.refusing = self.hanging = self.losing_answers = False
        self.before_write: Callable[[], None] = lambda: None
        self.answers_after_s = 0.0

    async def send(
        self, method: str, path: ResourcePath, body: Json | None = None, *, timeout_s: float | None = None
    ) -> Json:
        """Answer as an API server does."""
        assert timeout_s is not None, "every request is bounded"
        self.asked.append((method, str(path)))
        self.timeouts.append(timeout_s)
        if self.refusing:
            raise ApiError(0, "NoAnswer", "connection refused")
        if self.hanging:
            self.clock.pass_s(timeout_s)
            raise ApiError(0, "NoAnswer", "TimeoutError")
        if method != "GET":
            self.before_write()
        answer = self._answer(method, str(path), body)
        self.clock.pass_s(self.answers_after_s)
        if self.losing_answers:
            raise ApiError(0, "NoAnswer", "the connection broke")
        return answer

    def _answer(self, method: str, path: str, body: Json | None) -> Json:
        match method:
            case "GET":
                assert path == f"{PATH}/splitter"
                if self.lease is None:
                    raise ApiError(404, "NotFound", "no such lease")
                return self.lease
            case "POST":
                assert path == PATH
                if self.lease is not None:
                    raise ApiError(409, "AlreadyExists", "there is one")
            case "PUT":
                assert path == f"{PATH}/splitter"
                if self.lease is None:
                    raise ApiError(404, "NotFound", "no such lease")
                assert body is not None
                if body["metadata"]["resourceVersion"] != str(self.version):
                    raise ApiError(409, "Conflict", "the object has been modified")
            case _:
                raise AssertionError(method)
        assert body is not None
        return self.store(body)

    def store(self, body: Json) -> Json:
        """Keep a Lease under a new version."""
        self.version += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        return self.lease

    def spec(self, **changes: Any) -> Json:  # noqa: ANN401 (any field of a spec)
        """Return the spec, and change it first if told to."""
        assert self.lease is not None
        if changes:
            self.store({**self.lease, "spec": {**self.lease["spec"], **changes}})
        result: Json = self.lease["spec"]
        return result


@pytest.fixture
def clock() -> Clock:
    """Return the clock of all that take part."""
    return Clock()


@pytest.fixture
def leases(clock: Clock) -> Leases:
    """Return the API server."""
    return Leases(clock)


def candidate(leases: Leases, name: str, clock: Clock | None = None, **more: Any) -> Election:  # noqa: ANN401 (options of an Election)
    """Return one that takes part."""
    ticking = clock or leases.clock
    return Election(
        leases,
        "splitter-system",
        name,
        DURATION_S,
        clock=ticking,
        now=more.pop("now", lambda: NOON + timedelta(seconds=ticking() - 1000)),
        dice=more.pop("dice", lambda *_: 1.0),
    )


async def walk(clock: Clock, seconds: float, *elections: Election) -> None:
    """Let time go by in small steps, each taking its steps when they are due."""
    due = dict.fromkeys(elections, clock())
    end = clock() + seconds
    while clock() < end:
        for election in elections:
            if clock() >= due[election]:
                wait_s = await election.step()
                assert wait_s > 0
                due[election] = clock() + wait_s
            assert sum(one.leading for one in elections) <= 1
        clock.pass_s(0.05)


def leads(election: Election) -> bool:
    """Whether it leads, now and not as a type checker remembers it."""
    return election.leading


async def until_it_stops(leader: Election, clock: Clock) -> None:
    """Let time go by until a leader stops by itself."""
    while True:
        wait_s = await leader.step()
        if not leader.leading:
            return
        clock.pass_s(wait_s)


class TestAcquires:
    async def test_creates(self, leases: Leases) -> None:
        """The first one creates the Lease, with client-go's fields, and leads."""
        one = candidate(leases, "one")
        await one.step()
        assert one.leading
        assert leases.spec() == {
            "holderIdentity": "one",
            "leaseDurationSeconds": 12,
            "acquireTime": "2026-03-01T12:00:00.123456Z",
            "renewTime": "2026-03-01T12:00:00.123456Z",
            "leaseTransitions": 0,
        }

    async def test_second_stands_by(self, clock: Clock, leases: Leases) -> None:
        """As long as the first renews, the second stands by, and knows who leads."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 120, one, two)
        assert (one.leading, two.leading, two.leader) == (True, False, "one")
        assert leases.spec()["leaseTransitions"] == 0
        assert leases.spec()["acquireTime"] == "2026-03-01T12:00:00.123456Z"
        assert leases.spec()["renewTime"] > "2026-03-01T12:01:57"

    async def test_lost_race(self, leases: Leases) -> None:
        """Of two that create at the same moment the slower one stands by."""
        two = candidate(leases, "two")

        def one_is_faster() -> None:
            leases.before_write = lambda: None
            leases.store({"metadata": {}, "spec": {"holderIdentity": "one", "leaseDurationSeconds": 12}})

        leases.before_write = one_is_faster
        await two.step()
        assert not leads(two)
        await two.step()
        assert (two.leading, two.leader) == (False, "one")

    async def test_lost_race_for_a_free_one(self, leases: Leases) -> None:
        """Of two that take a free Lease at the same moment the slower one gets a 409 and stands by."""
        leases.store({"metadata": {}, "spec": {"leaseDurationSeconds": 1, "leaseTransitions": 4}})
        two = candidate(leases, "two")

        def one_is_faster() -> None:
            leases.before_write = lambda: None
            leases.spec(holderIdentity="one", leaseDurationSeconds=12)

        leases.before_write = one_is_faster
        await two.step()
        assert (two.leading, leases.spec()["holderIdentity"]) == (False, "one")

    async def test_keeps_what_others_wrote(self, leases: Leases) -> None:
        """Labels on the Lease, and fields of its spec that we do not know, stay."""
        leases.store({"metadata": {"labels": {"a": "b"}}, "spec": {"strategy": "OldestEmulationVersion"}})
        await candidate(leases, "one").step()
        assert leases.lease is not None
        assert leases.lease["metadata"]["labels"] == {"a": "b"}
        assert leases.spec()["strategy"] == "OldestEmulationVersion"


class TestExpires:
    async def test_taken_over(self, clock: Clock, leases: Leases) -> None:
        """One that is killed is replaced when its Lease has run out, counted from the last renewal seen."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 30, one, two)
        await walk(clock, DURATION_S - 2.5, two)
        assert not leads(two)
        await walk(clock, 4, two)
        assert two.leading
        assert leases.spec()["holderIdentity"] == "two"
        assert leases.spec()["leaseTransitions"] == 1
        assert leases.spec()["acquireTime"] > "2026-03-01T12:00:35"

    async def test_duration_of_the_holder(self, clock: Clock, leases: Leases) -> None:
        """The duration counts that the holder wrote, so that a release with another one is no accident."""
        leases.store({"metadata": {}, "spec": {"holderIdentity": "old", "leaseDurationSeconds": 60}})
        two = candidate(leases, "two")
        await walk(clock, 59, two)
        assert not leads(two)
        await walk(clock, 2, two)
        assert two.leading

    @pytest.mark.parametrize("skew_s", [-7200, -60, 60, 7200])
    async def test_clock_skew(self, clock: Clock, leases: Leases, skew_s: int) -> None:
        """A holder's clock that is hours off neither frees nor keeps the Lease."""
        one = candidate(
            leases, "one", now=lambda: NOON + timedelta(seconds=skew_s) + timedelta(seconds=clock() - 1000)
        )
        two = candidate(leases, "two")
        await walk(clock, 60, one, two)
        assert one.leading
        await walk(clock, 16, two)
        assert two.leading

    async def test_touched_is_not_renewed(self, clock: Clock, leases: Leases) -> None:
        """Somebody who annotates the Lease of a dead leader does not bring it to life."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 5, one, two)
        for number in range(10):
            await walk(clock, 1.5, two)
            assert leases.lease is not None
            leases.store(
                {**leases.lease, "metadata": {**leases.lease["metadata"], "labels": {"n": str(number)}}}
            )
        assert two.leading

    async def test_deleted(self, clock: Clock, leases: Leases) -> None:
        """Deleting the Lease frees nobody: its holder writes it again, the other waits as before."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 5, one, two)
        leases.lease = None
        await two.step()
        assert leases.lease is None
        await walk(clock, 5, two, one)
        assert one.leading
        leases.lease = None
        await walk(clock, DURATION_S - 3, two)
        assert not leads(two)
        await walk(clock, 4, two)
        assert two.leading

    async def test_deleted_and_taken(self, clock: Clock, leases: Leases) -> None:
        """A newcomer that finds no Lease creates it; the leader sees that at its next renewal and stops."""
        one = candidate(leases, "one")
        await one.step()
        leases.lease = None
        await candidate(leases, "newcomer").step()
        clock.pass_s(2)
        await one.step()
        assert (one.leading, one.leader) == (False, "newcomer")


class TestTroubles:
    @pytest.mark.parametrize("trouble", ["refusing", "hanging"])
    async def test_stops_in_time(self, clock: Clock, leases: Leases, trouble: str) -> None:
        """A leader that cannot renew stops after two thirds, the other begins after the whole duration."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 10, one, two)
        last_s = datetime.fromisoformat(leases.spec()["renewTime"]).timestamp() - NOON.timestamp() + 1000
        setattr(leases, trouble, True)
        await until_it_stops(one, clock)
        assert last_s + RENEW_WITHIN_S <= clock() + 0.001 <= last_s + RENEW_WITHIN_S + 0.1
        await one.step()
        assert one.left_s() == 0
        setattr(leases, trouble, False)
        await walk(clock, 20, two)
        assert two.leading

    async def test_permit_ends_by_itself(self, clock: Clock, leases: Leases) -> None:
        """The permit to write ends with the clock, whatever the election is waiting for."""
        one = candidate(leases, "one")
        await one.step()
        assert one.left_s() == DURATION_S
        clock.pass_s(RENEW_WITHIN_S - 0.1)
        assert one.left_s() == pytest.approx(4.1)
        clock.pass_s(0.1)
        assert (one.leading, one.left_s()) == (False, 0.0)

    async def test_counts_from_before_it_was_sent(self, clock: Clock, leases: Leases) -> None:
        """A renewal that took 3 s to be answered lasts 3 s less."""
        one = candidate(leases, "one")
        await one.step()
        clock.pass_s(2)
        leases.answers_after_s = 3
        await one.step()
        assert clock() == 1005
        assert one.left_s() == DURATION_S - 3

    async def test_requests_are_bounded(self, clock: Clock, leases: Leases) -> None:
        """Two requests that hang fit before the leader's time ends, and none outlives it."""
        one = candidate(leases, "one")
        await one.step()
        leases.hanging = True
        leases.timeouts.clear()
        began_s = clock()
        await until_it_stops(one, clock)
        assert clock() <= began_s + RENEW_WITHIN_S + 0.1
        assert len(leases.timeouts) >= 2
        assert max(leases.timeouts) <= RENEW_WITHIN_S / 2

    async def test_answer_lost(self, clock: Clock, leases: Leases) -> None:
        """A renewal whose answer got lost is recognised as its own at the next one."""
        one = candidate(leases, "one")
        await one.step()
        leases.losing_answers = True
        clock.pass_s(await one.step())
        leases.losing_answers = False
        await one.step()
        assert one.leading
        assert one.left_s() == DURATION_S

    async def test_answer_to_taking_lost(self, clock: Clock, leases: Leases) -> None:
        """Who took the Lease without knowing it finds out at the next look, and leads from then on."""
        one = candidate(leases, "one")
        leases.store({"metadata": {}, "spec": {}})
        leases.before_write = lambda: setattr(leases, "losing_answers", True)
        await one.step()
        assert not leads(one)
        assert leases.spec()["holderIdentity"] == "one"
        leases.before_write, leases.losing_answers = (lambda: None), False
        clock.pass_s(1)
        await one.step()
        assert one.leading

    async def test_comes_back(self, clock: Clock, leases: Leases) -> None:
        """After an outage that nobody used the old leader leads again, in a new term."""
        one = candidate(leases, "one")
        await one.step()
        leases.refusing = True
        await walk(clock, 30, one)
        assert not leads(one)
        await one.lost()
        leases.refusing = False
        await walk(clock, 3, one)
        assert one.leading
        await one.gained()


class TestPaused:
    async def test_wakes_up_and_another_leads(self, clock: Clock, leases: Leases) -> None:
        """A leader that was stopped for a minute may not write when it wakes up, before it asks anybody."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 10, one, two)
        await walk(clock, 60, two)
        assert two.leading
        asked = len(leases.asked)
        assert (one.leading, one.left_s()) == (False, 0.0)
        assert len(leases.asked) == asked
        await one.step()
        assert (one.leading, one.leader) == (False, "two")
        assert two.leading

    async def test_paused_while_renewing(self, clock: Clock, leases: Leases) -> None:
        """A renewal that was answered before a pause and read after it gives no time."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 10, one, two)
        leases.answers_after_s = 60
        await one.step()
        leases.answers_after_s = 0
        assert not leads(one)

    async def test_paused_before_taking(self, clock: Clock, leases: Leases) -> None:
        """A standby that sleeps between its look and its taking meets the version of a newer renewal."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 10, one, two)
        clock.pass_s(DURATION_S + 1)  # nobody ran meanwhile

        def one_wakes_first() -> None:
            leases.before_write = lambda: None
            leases.spec(renewTime="2026-03-01T12:00:24.000000Z")

        leases.before_write = one_wakes_first
        await two.step()
        assert not leads(two)
        assert leases.spec()["holderIdentity"] == "one"

    def test_clock_goes_on_in_sleep(self) -> None:
        """Where there is a clock that goes on while the machine sleeps, it is the one that counts."""
        if not hasattr(time, "CLOCK_BOOTTIME"):
            pytest.skip("this system has none")
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        assert before <= lease_clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


class TestReleases:
    async def test_clean_stop(self, clock: Clock, leases: Leases) -> None:
        """A leader that leaves lets go, as client-go does, and the other leads at its next look."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await walk(clock, 10, one, two)
        assert await one.release()
        assert not leads(one)
        assert "holderIdentity" not in leases.spec()
        assert leases.spec()["leaseDurationSeconds"] == 1
        await walk(clock, 1.5, two)
        assert two.leading
        assert leases.spec()["leaseTransitions"] == 1
        assert leases.spec()["leaseDurationSeconds"] == 12

    async def test_after_a_renewal_cut_off(self, clock: Clock, leases: Leases) -> None:
        """A renewal that was under way when we were told to leave keeps nobody waiting."""
        one = candidate(leases, "one")
        await walk(clock, 5, one)
        leases.spec(renewTime="2026-03-01T12:00:06.000000Z")
        assert await one.release()
        assert "holderIdentity" not in leases.spec()

    async def test_not_the_lease_of_another(self, clock: Clock, leases: Leases) -> None:
        """What another one holds by now is not let go."""
        one = candidate(leases, "one")
        await walk(clock, 5, one)
        leases.spec(holderIdentity="two")
        assert not await one.release()
        assert leases.spec()["holderIdentity"] == "two"

    async def test_standby_releases_nothing(self, leases: Leases) -> None:
        """Who does not lead asks nothing when it leaves."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await one.step()
        await two.step()
        asked = len(leases.asked)
        assert not await two.release()
        assert len(leases.asked) == asked

    async def test_api_server_away(self, leases: Leases) -> None:
        """Without an answer it leaves all the same; the others wait for the end of the Lease."""
        one = candidate(leases, "one")
        await one.step()
        leases.refusing = True
        assert not await one.release()
        assert not leads(one)


class TestTimeOfDay:
    @pytest.fixture
    def kathmandu(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        """Be in a time zone that is 5:45 h ahead of UTC."""
        monkeypatch.setenv("TZ", "Asia/Kathmandu")
        time.tzset()
        assert os.environ["TZ"] != "UTC"
        yield
        monkeypatch.undo()
        time.tzset()

    @pytest.mark.usefixtures("kathmandu")
    async def test_is_utc(self, leases: Leases) -> None:
        """Wherever the process runs, the Lease says UTC, with microseconds."""
        one = Election(leases, "splitter-system", "one", DURATION_S, clock=leases.clock)
        before = datetime.now(UTC)
        await one.step()
        written = leases.spec()["renewTime"]
        assert written.endswith("Z")
        assert len(written) == len("2026-03-01T12:00:00.123456Z")
        assert before <= datetime.fromisoformat(written) <= datetime.now(UTC)

    @pytest.mark.usefixtures("kathmandu")
    async def test_local_times_are_converted(self, leases: Leases) -> None:
        """A time with another offset is written as UTC."""
        there = NOON.astimezone()
        assert there.hour == 17
        await candidate(leases, "one", now=lambda: there).step()
        assert leases.spec()["acquireTime"] == "2026-03-01T12:00:00.123456Z"


class TestPace:
    async def test_is_spread(self, leases: Leases) -> None:
        """Standbys ask about once a second and not in step; the leader renews about every two."""
        one, early, late = (
            candidate(leases, "one"),
            candidate(leases, "early", dice=lambda low, _: low),
            candidate(leases, "late", dice=lambda _, high: high),
        )
        assert await one.step() == pytest.approx(2.0)
        assert await early.step() == pytest.approx(0.8)
        assert await late.step() == pytest.approx(1.2)

    async def test_never_sleeps_past_the_end(self, clock: Clock, leases: Leases) -> None:
        """A standby wakes up at the moment in which the Lease runs out."""
        one, two = candidate(leases, "one"), candidate(leases, "two")
        await one.step()
        await two.step()
        clock.pass_s(DURATION_S - 0.3)
        assert await two.step() == pytest.approx(0.3)
        clock.pass_s(0.3)
        await two.step()
        assert two.leading
