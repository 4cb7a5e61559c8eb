"""The queue of workload keys: urgent ones first, each at most once, never by two workers at a time."""

import asyncio
from random import Random

import pytest

from splitter.core.names import Key
from splitter.reconciler.queue import WorkQueue

A, B, C = (Key("Deployment", "shop", name) for name in "abc")
DEADLINE_S = 20.0


async def take(queue: WorkQueue) -> Key:
    """Take a key that must come."""
    async with asyncio.timeout(DEADLINE_S):
        return await queue.take()


async def moment(seconds: float) -> None:
    """Return when others have had their turn, after so many seconds."""
    clock = WorkQueue()
    clock.add_after(A, seconds)
    await take(clock)


async def drain(queue: WorkQueue) -> list[Key]:
    """Take and give back all that waits now."""
    collected = []
    while len(queue):
        key = await take(queue)
        queue.done(key)
        collected.append(key)
    return collected


class TestOrder:
    async def test_first_in_first_out(self) -> None:
        """Keys come in the order in which they were added."""
        queue = WorkQueue()
        for key in (B, A, C):
            queue.add(key)
        assert await drain(queue) == [B, A, C]

    @pytest.mark.parametrize("urgent", [False, True])
    async def test_namespaces_take_turns(self, urgent: bool) -> None:
        """Whoever heaps up keys waits for them; who has one waits for one of each other namespace."""
        queue = WorkQueue()
        heap = [Key("Deployment", "evil", f"web-{number}") for number in range(1000)]
        for key in (*heap[:500], A, *heap[500:], B):
            queue.add(key, urgent=urgent)
        order = await drain(queue)
        assert order[:4] == [heap[0], A, heap[1], B]
        assert order[4:] == heap[2:]

    async def test_urgent_first(self) -> None:
        """An urgent key goes before all others, behind those that were urgent before it."""
        queue = WorkQueue()
        queue.add(A)
        queue.add(B, urgent=True)
        queue.add(C, urgent=True)
        assert await drain(queue) == [B, C, A]

    async def test_emergency_worker_leaves_the_rest(self) -> None:
        """A worker for emergencies takes no other key, and is there when an urgent one comes."""
        queue = WorkQueue()
        queue.add(A)
        waiting = asyncio.create_task(queue.take(only_urgent=True))
        assert await take(queue) == A
        assert not waiting.done()
        queue.add(B, urgent=True)
        async with asyncio.timeout(DEADLINE_S):
            assert await waiting == B

    async def test_becomes_urgent(self) -> None:
        """A key that waits already is moved to the front when it becomes urgent, and waits once."""
        queue = WorkQueue()
        queue.add(A)
        queue.add(B)
        queue.add(B, urgent=True)
        assert len(queue) == 2
        assert await drain(queue) == [B, A]

    async def test_stays_urgent(self) -> None:
        """An urgent key is not set back by an ordinary event."""
        queue = WorkQueue()
        queue.add(A)
        queue.add(B, urgent=True)
        queue.add(B)
        assert await drain(queue) == [B, A]


class TestCalm:
    """Whoever only tells waits while somebody is raised."""

    async def test_waits_for_the_emergency_and_no_other(self) -> None:
        """An urgent key that waits, and while it is worked on; an ordinary one is no hurry."""
        queue = WorkQueue()
        queue.add(A)
        async with asyncio.timeout(DEADLINE_S):
            await queue.calm()
        queue.add(B, urgent=True)
        waiting = asyncio.create_task(queue.calm())
        assert await take(queue) == B
        await asyncio.wait([waiting], timeout=0.01)
        assert not waiting.done()
        queue.done(B)
        async with asyncio.timeout(DEADLINE_S):
            await waiting

    async def test_cancelled_as_it_becomes_calm(self) -> None:
        """Whoever waits is cancelled at any moment: a term ends only when all who wait have ended."""
        queue = WorkQueue()
        queue.add(A, urgent=True)
        waiting = asyncio.create_task(queue.calm())
        key = await take(queue)
        await moment(0)
        queue.done(key)
        waiting.cancel()
        await asyncio.wait([waiting], timeout=DEADLINE_S)
        assert waiting.cancelled()

    async def test_hurried_while_another_waits(self) -> None:
        """What can wait does so for those that nobody works on yet, and for no ordinary key."""
        queue = WorkQueue()
        queue.add(A)
        assert not queue.hurried()
        queue.add(B, urgent=True)
        assert queue.hurried()
        assert await take(queue) == B
        assert not queue.hurried()

    async def test_hurried_for_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In a storm that does not end everything is written at last."""
        monkeypatch.setattr("splitter.reconciler.queue._PATIENCE_S", 0.0)
        queue = WorkQueue()
        queue.add(A, urgent=True)
        assert not queue.hurried()

    async def test_has_an_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A storm that goes on for ever silences nobody for ever."""
        monkeypatch.setattr("splitter.reconciler.queue._PATIENCE_S", 0.01)
        queue = WorkQueue()
        queue.add(A, urgent=True)
        async with asyncio.timeout(DEADLINE_S):
            await queue.calm()
        assert len(queue) == 1


class TestOnce:
    async def test_ten_events_one_pass(self) -> None:
        """However often a key is added, it comes once."""
        queue = WorkQueue()
        for _ in range(10):
            queue.add(A)
        assert await drain(queue) == [A]

    async def test_again_while_worked_on(self) -> None:
        """What changes while a key is worked on is looked at afterwards, once, and not before."""
        queue = WorkQueue()
        queue.add(A)
        assert await take(queue) == A
        for _ in range(3):
            queue.add(A)
        assert len(queue) == 0
        queue.add(B)
        assert await take(queue) == B
        queue.done(A)
        assert await drain(queue) == [A]

    async def test_urgent_while_worked_on(self) -> None:
        """It comes again with the urgency of the most urgent of them."""
        queue = WorkQueue()
        queue.add(A)
        await take(queue)
        queue.add(A, urgent=True)
        queue.add(A)
        queue.add(B)
        queue.done(A)
        assert await drain(queue) == [A, B]

    async def test_done_and_over(self) -> None:
        """A key to which nothing happened meanwhile does not come again."""
        queue = WorkQueue()
        queue.add(A)
        queue.done(await take(queue))
        assert len(queue) == 0
        queue.add(A)
        assert await drain(queue) == [A]

    async def test_two_workers(self) -> None:
        """Each waiting worker gets a key of its own."""
        queue = WorkQueue()
        workers = [asyncio.create_task(take(queue)) for _ in range(2)]
        queue.add(A)
        queue.add(B)
        assert set(await asyncio.gather(*workers)) == {A, B}

    async def test_worker_that_left(self) -> None:
        """A worker that was cancelled while it waited takes no key with it."""
        queue = WorkQueue()
        left = asyncio.create_task(queue.take())
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.wait([left], timeout=0)
        left.cancel()
        await asyncio.wait([left])
        queue.add(A)
        assert await take(queue) == A


class TestTimers:
    async def test_comes_later(self) -> None:
        """A key asked for in a while comes by itself, and does not wait in the queue until then."""
        queue = WorkQueue()
        queue.add_after(A, 0.01)
        assert len(queue) == 0
        assert await take(queue) == A

    async def test_order_of_time(self) -> None:
        """Timers end in the order of their times."""
        queue = WorkQueue()
        queue.add_after(A, 0.1)
        queue.add_after(B, 0.01)
        assert [await take(queue), await take(queue)] == [B, A]

    async def test_sooner_wins(self) -> None:
        """A look due sooner stays; a later one does not push it back, a sooner one pulls it forward."""
        queue = WorkQueue()
        queue.add_after(A, 0.01)
        queue.add_after(A, 3600)
        assert await take(queue) == A
        queue.done(A)
        queue.add_after(B, 3600)
        queue.add_after(B, 0.01)
        assert await take(queue) == B

    async def test_after_it_was_due(self) -> None:
        """Once a timer has ended, the next may be as late as it likes, and comes."""
        queue = WorkQueue()
        for _ in range(2):
            queue.add_after(A, 0.01)
            assert await take(queue) == A
            queue.done(A)

    async def test_due_while_worked_on(self) -> None:
        """A timer that ends during a reconcile makes another reconcile afterwards."""
        queue = WorkQueue()
        queue.add(A)
        await take(queue)
        queue.add_after(A, 0.001)
        queue.add_after(B, 0.01)
        assert await take(queue) == B
        queue.done(A)
        assert await take(queue) == A


class TestBursts:
    """A swarm of notices is one decision, not one a node; the first notice never waits."""

    SHORT_S, LONG_S = 0.02, 3600.0

    async def test_first_is_never_delayed(self) -> None:
        """The first urgent call for a key is there at once, whatever the others do."""
        queue = WorkQueue(self.LONG_S)
        queue.add(A, urgent=True)
        queue.add(B, urgent=True)
        assert await drain(queue) == [A, B]

    async def test_others_are_one(self) -> None:
        """Of ten more in the same burst there is one more reconcile, when the burst is over."""
        queue = WorkQueue(self.SHORT_S)
        queue.add(A, urgent=True)
        assert await drain(queue) == [A]
        for _ in range(10):
            queue.add(A, urgent=True)
        assert len(queue) == 0
        assert await take(queue) == A
        queue.done(A)
        assert len(queue) == 0

    async def test_held_back_only_for_the_burst(self) -> None:
        """Within a burst nothing urgent is put into the queue again."""
        queue = WorkQueue(self.LONG_S)
        for _ in range(5):
            queue.add(A, urgent=True)
        assert await drain(queue) == [A]

    async def test_ordinary_events_go_on(self) -> None:
        """A burst of notices does not hold up what is not urgent."""
        queue = WorkQueue(self.LONG_S)
        queue.add(A, urgent=True)
        assert await drain(queue) == [A]
        queue.add(A, urgent=True)
        queue.add(A)
        assert await drain(queue) == [A]

    async def test_after_the_burst(self) -> None:
        """A notice after the burst is a first one again."""
        queue = WorkQueue(self.SHORT_S)
        queue.add(A, urgent=True)
        queue.add(A, urgent=True)
        assert await drain(queue) == [A]
        assert await take(queue) == A  # the burst is over, and with its reconcile another begins
        queue.done(A)
        queue.add(A, urgent=True)
        assert len(queue) == 0
        assert await take(queue) == A
        queue.done(A)
        await moment(self.SHORT_S * 2)
        queue.add(A, urgent=True)
        assert await drain(queue) == [A]

    async def test_endless_swarm(self) -> None:
        """However many notices come, there is one reconcile in each `coalesce_s`, and the first at once."""
        queue, reconciles = WorkQueue(0.05), 0
        for _ in range(100):
            queue.add(A, urgent=True)
            reconciles += len(await drain(queue))
            await moment(0.007)
        assert reconciles <= 100 * 0.007 / 0.05 + 1

    async def test_during_the_pass(self) -> None:
        """Notices during the reconcile that the first one caused are seen by another reconcile."""
        queue = WorkQueue(self.SHORT_S)
        queue.add(A, urgent=True)
        await take(queue)
        queue.add(A, urgent=True)
        queue.add_after(B, self.SHORT_S * 5)
        assert await take(queue) == B  # the burst ended while A was worked on
        queue.done(A)
        assert await take(queue) == A


class TestRest:
    """A key rests after its reconcile: the echo of its own writes is one more, not one for each answer."""

    SHORT_S, LONG_S = 0.02, 3600.0

    async def test_first_is_never_delayed(self) -> None:
        """What comes when nothing was done lately is there at once."""
        queue = WorkQueue(rest_s=self.LONG_S)
        queue.add(A)
        queue.add(B)
        assert await drain(queue) == [A, B]

    async def test_the_echo_is_one(self) -> None:
        """However often it is asked for, a key that rests comes once, at the end of its rest."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        assert await drain(queue) == [A]
        for _ in range(10):
            queue.add(A)
        assert len(queue) == 0
        began = asyncio.get_running_loop().time()
        assert await take(queue) == A
        assert asyncio.get_running_loop().time() - began >= self.SHORT_S / 2
        queue.done(A)
        assert len(queue) == 0

    async def test_asked_for_during_the_pass(self) -> None:
        """What a reconcile itself sets off, by its writes, waits until the key has rested."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        await take(queue)
        queue.add(A)
        queue.done(A)
        assert len(queue) == 0
        assert await take(queue) == A

    async def test_nobody_asked(self) -> None:
        """A key comes by itself neither after its rest nor ever."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        assert await drain(queue) == [A]
        queue.add_after(B, self.SHORT_S * 5)
        assert await take(queue) == B
        assert len(queue) == 0

    async def test_after_the_rest(self) -> None:
        """Whatever comes after the rest is a first call again."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        assert await drain(queue) == [A]
        queue.add_after(B, self.SHORT_S * 5)
        assert await take(queue) == B
        queue.add(A)
        assert len(queue) == 1

    async def test_urgent_never_rests(self) -> None:
        """An urgent call is there at once, and its reconcile answers what was asked for before."""
        queue = WorkQueue(rest_s=self.LONG_S)
        queue.add(A)
        assert await drain(queue) == [A]
        queue.add(A)
        queue.add(A, urgent=True)
        assert await drain(queue) == [A]

    async def test_answers_what_was_due(self) -> None:
        """After the urgent reconcile of a key that was due nothing is left to do for it."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        assert await drain(queue) == [A]
        queue.add(A)
        queue.add(A, urgent=True)
        assert await drain(queue) == [A]
        queue.add_after(B, self.SHORT_S * 5)
        assert await take(queue) == B
        assert len(queue) == 0

    async def test_urgent_during_the_pass(self) -> None:
        """A notice that comes while a key is worked on is seen by the next reconcile, at once."""
        queue = WorkQueue(rest_s=self.LONG_S)
        queue.add(A)
        await take(queue)
        queue.add(A)
        queue.add(A, urgent=True)
        queue.done(A)
        assert await drain(queue) == [A]

    async def test_no_rest_after_an_urgent_pass(self) -> None:
        """What the reconcile of an urgent call sets off is looked at without delay, and rests only then."""
        queue = WorkQueue(rest_s=self.LONG_S)
        queue.add(A, urgent=True)
        queue.answered(await take(queue))
        queue.add(A)
        queue.done(A)
        assert await drain(queue) == [A]
        queue.add(A)
        assert len(queue) == 0

    async def test_no_rest_before_the_answer(self) -> None:
        """While an urgent call is unanswered, since its reconciles fail, the key comes whenever asked for."""
        queue = WorkQueue(rest_s=self.LONG_S)
        queue.add(A, urgent=True)
        for _ in range(3):
            queue.done(await take(queue))  # nobody said `answered`
            queue.add(A)
            assert len(queue) == 1
        queue.answered(await take(queue))
        queue.done(A)
        queue.add(A)
        assert len(queue) == 0

    async def test_longer_the_more_rest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The more keys rest at a time the longer each of them does, within bounds."""
        monkeypatch.setattr("splitter.reconciler.queue._REST_EACH_S", self.LONG_S)
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        queue.add(B)
        assert await drain(queue) == [A, B]  # A rested alone, B beside A
        queue.add(B)
        queue.add(A)
        assert await take(queue) == A
        await moment(self.SHORT_S * 2)
        assert len(queue) == 0
        queue.add(B, urgent=True)
        assert await take(queue) == B

    async def test_never_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many rest, each of them comes."""
        monkeypatch.setattr("splitter.reconciler.queue._REST_EACH_S", self.LONG_S)
        monkeypatch.setattr("splitter.reconciler.queue._LONGEST_REST_S", self.SHORT_S * 2)
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        queue.add(B)
        assert await drain(queue) == [A, B]
        queue.add(B)
        assert await take(queue) == B

    async def test_briefly(self) -> None:
        """Who asks during the reconcile to come again sooner rests so long and no longer, once."""
        queue = WorkQueue(rest_s=self.LONG_S)
        queue.add(A)
        assert await take(queue) == A
        queue.add_after(A, self.SHORT_S)
        queue.add(A)
        queue.done(A)
        assert len(queue) == 0
        assert await take(queue) == A
        queue.add(A)
        queue.done(A)
        queue.add_after(B, self.SHORT_S)
        assert await take(queue) == B
        assert len(queue) == 0

    async def test_for_as_long_as_is_asked(self) -> None:
        """Who is to rest longer does, whatever is told of it, and comes then; an urgent call ends it."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        assert await take(queue) == A
        queue.rest(A, self.SHORT_S * 6)
        queue.done(A)
        queue.add(A)
        queue.add_after(B, self.SHORT_S * 3)
        assert await take(queue) == B
        assert await take(queue) == A
        queue.rest(A, self.LONG_S)
        queue.done(A)
        queue.add(A)
        assert len(queue) == 0
        queue.add(A, urgent=True)
        assert await take(queue) == A

    async def test_timers_rest_too(self) -> None:
        """A look that is due while the key rests comes at the end of the rest."""
        queue = WorkQueue(rest_s=self.SHORT_S)
        queue.add(A)
        assert await drain(queue) == [A]
        queue.add_after(A, 0.0)
        queue.add_after(B, self.SHORT_S / 4)
        assert await take(queue) == B
        assert await take(queue) == A

    @pytest.mark.parametrize("seed", range(5))
    async def test_nothing_is_lost(self, seed: int) -> None:
        """Whatever is asked for, in whatever order, is seen by a reconcile that began afterwards."""
        queue, chance = WorkQueue(0.001, rest_s=0.002), Random(seed)
        asked, seen = dict.fromkeys((A, B, C), 0), dict.fromkeys((A, B, C), 0)
        looked = asyncio.Event()

        async def work(*, only_urgent: bool) -> None:
            while True:
                key = await queue.take(only_urgent=only_urgent)
                seen[key] = asked[key]
                await moment(chance.choice((0, 0, 0.001)))
                if chance.random() < 0.7:
                    queue.answered(key)
                queue.done(key)
                looked.set()

        async with asyncio.timeout(DEADLINE_S):
            workers = [asyncio.create_task(work(only_urgent=one)) for one in (False, False, True)]
            for _ in range(500):
                key = chance.choice((A, B, C))
                asked[key] += 1
                queue.add(key, urgent=chance.random() < 0.2)
                await moment(chance.choice((0, 0, 0, 0.001, 0.003)))
            while seen != asked:
                looked.clear()
                await looked.wait()
        for worker in workers:
            worker.cancel()


class TestCalls:
    """How long an urgent call waits for the reconcile that answers it: the reaction that metrics show."""

    @staticmethod
    async def finish(queue: WorkQueue, *, well: bool = True) -> float | None:
        """Take the next key, and return how long it had waited when its reconcile was over."""
        key = await take(queue)
        waited_s = queue.waited_s(key)
        if well:
            queue.answered(key)
        queue.done(key)
        return waited_s

    async def test_counted_from_the_first(self) -> None:
        """The first of several calls counts, for one reconcile answers all of them."""
        queue = WorkQueue()
        queue.add(A, urgent=True)
        elsewhere = WorkQueue()
        elsewhere.add_after(B, 0.02)
        assert await take(elsewhere) == B
        queue.add(A, urgent=True)
        waited_s = await self.finish(queue)
        assert waited_s is not None
        assert 0.02 <= waited_s < DEADLINE_S

    async def test_nobody_called(self) -> None:
        """A reconcile that nobody called for urgently has answered nothing."""
        queue = WorkQueue()
        queue.add(A)
        assert await self.finish(queue) is None

    async def test_answered_once(self) -> None:
        """The next reconcile of the workload answers no call of before."""
        queue = WorkQueue()
        queue.add(A, urgent=True)
        assert await self.finish(queue) is not None
        queue.add(A)
        assert await self.finish(queue) is None

    async def test_a_pass_that_failed_has_not_answered(self) -> None:
        """The call waits on until a reconcile has succeeded."""
        queue = WorkQueue()
        queue.add(A, urgent=True)
        first_s = await self.finish(queue, well=False)
        queue.add(A)
        second_s = await self.finish(queue)
        assert first_s is not None
        assert second_s is not None
        assert second_s >= first_s

    async def test_called_again_meanwhile(self) -> None:
        """What comes while a reconcile is under way is for the next one to answer."""
        queue = WorkQueue()
        queue.add(A, urgent=True)
        key = await take(queue)
        queue.add(A, urgent=True)
        queue.answered(key)
        queue.done(key)
        assert await self.finish(queue) is not None

    async def test_of_a_burst(self) -> None:
        """A call that is held back to make one reconcile of a swarm counts from when it came."""
        queue = WorkQueue(coalesce_s=0.05)
        queue.add(A, urgent=True)
        await self.finish(queue)
        queue.add(A, urgent=True)
        waited_s = await self.finish(queue)
        assert waited_s is not None
        assert waited_s >= 0.02


class TestLeftAlone:
    """A key that has held up the process waits, and what came meanwhile is not forgotten."""

    @pytest.mark.parametrize("when", ["before", "meanwhile", "while it is worked on", "before it is served"])
    async def test_an_urgent_call(self, when: str) -> None:
        """A loss that came before or meanwhile goes first afterwards, and counts from when it came."""
        queue = WorkQueue()
        if when == "while it is worked on":
            queue.add(A)
            await take(queue)
        if when in {"before", "while it is worked on"}:
            queue.add(A, urgent=True)
        queue.leave_alone(A, 0.05)
        if when in {"meanwhile", "before it is served"}:
            queue.add(A, urgent=True)
        if when == "before it is served":
            queue.serve(served=True)
        if when == "while it is worked on":
            queue.done(A)
        queue.add(A)
        assert not len(queue)
        await moment(0.06)
        queue.add(B)
        async with asyncio.timeout(DEADLINE_S):
            assert await queue.take(only_urgent=True) == A
        waited_s = queue.waited_s(A)
        assert waited_s is not None
        assert waited_s >= 0.05

    async def test_an_ordinary_call(self) -> None:
        """Without a loss it comes as others do."""
        queue = WorkQueue()
        queue.leave_alone(A, 0.01)
        await moment(0.02)
        queue.add(B, urgent=True)
        assert await drain(queue) == [B, A]
        assert queue.waited_s(A) is None

    async def test_the_only_emergency(self) -> None:
        """If none but it was urgent, it is calm now: what waits for that goes on."""
        queue = WorkQueue()
        queue.add(A, urgent=True)
        waiting = asyncio.create_task(queue.calm())
        await moment(0)
        queue.leave_alone(A, DEADLINE_S)
        await moment(0)
        await moment(0)
        assert waiting.done()
        assert not queue.hurried()


def many(namespace: str, count: int) -> list[Key]:
    """Return keys of so many workloads of a namespace."""
    return [Key("Deployment", namespace, f"w{number}") for number in range(count)]


class TestNamespaces:
    """Who has much to do delays the others by one reconcile of each worker at most, in either lane."""

    WORKERS = 8

    def queue(self) -> WorkQueue:
        """Return a queue for so many workers of either sort."""
        return WorkQueue(workers=self.WORKERS, emergency_workers=self.WORKERS)

    @pytest.mark.parametrize("urgent", [False, True])
    async def test_have_turns(self, urgent: bool) -> None:
        """Of a thousand keys of one namespace not one more goes before another's than has its turn."""
        queue, crowd = WorkQueue(), many("evil", 1000)
        for key in crowd:
            queue.add(key, urgent=urgent)
        assert [await take(queue) for _ in range(3)] == crowd[:3]
        queue.add(A, urgent=urgent)
        queue.add(B, urgent=urgent)
        assert [await take(queue) for _ in range(5)] == [crowd[3], A, crowd[4], B, crowd[5]]

    async def test_keep_their_own_order(self) -> None:
        """Within a namespace the first come is the first served."""
        queue, crowd = self.queue(), many("evil", 20)
        for key in [*crowd, A, B, C]:
            queue.add(key)
        order = await drain(queue)
        assert [key for key in order if key.namespace == "evil"] == crowd
        assert [key for key in order if key.namespace == "shop"] == [A, B, C]
        assert order.index(C) < 6

    @pytest.mark.parametrize("urgent", [False, True])
    async def test_leave_a_worker(self, urgent: bool) -> None:
        """However long the reconciles of one namespace take, a worker is there when another's key comes."""
        queue = self.queue()
        for key in many("evil", 100):
            queue.add(key, urgent=urgent)
        workers = [asyncio.create_task(queue.take(only_urgent=urgent)) for _ in range(self.WORKERS)]
        await moment(0.01)
        assert [worker.done() for worker in workers].count(True) == self.WORKERS - 1
        queue.add(A, urgent=urgent)
        async with asyncio.timeout(DEADLINE_S):
            taken = await asyncio.gather(*workers)
        assert taken.count(A) == 1

    async def test_get_half_while_another_waits(self) -> None:
        """As its reconciles end, a namespace gets at most half of the workers until others are served."""
        queue, crowd, others = self.queue(), many("evil", 100), many("shop", 100)
        for key in crowd:
            queue.add(key)
        held = [await take(queue) for _ in range(self.WORKERS - 1)]
        for key in others:
            queue.add(key)
        held.append(await take(queue))
        for _ in range(50):  # it is always a reconcile of the greater one that ends, if it has more than half
            shares = {name: [key for key in held if key.namespace == name] for name in ("evil", "shop")}
            ends = max(shares.values(), key=len)[0]
            held.remove(ends)
            queue.done(ends)
            held.append(await take(queue))
        assert {key.namespace for key in held} == {"evil", "shop"}
        assert sum(key.namespace == "evil" for key in held) == self.WORKERS // 2

    async def test_take_up_where_they_were_held_back(self) -> None:
        """The worker that was left for others takes the next key when a reconcile of the namespace ends."""
        queue, crowd = WorkQueue(workers=2, emergency_workers=1), many("evil", 2)
        for key in crowd:
            queue.add(key)
        first = await take(queue)
        second = asyncio.create_task(queue.take())
        await moment(0.01)
        assert not second.done()
        queue.done(first)
        async with asyncio.timeout(DEADLINE_S):
            assert [first, await second] == crowd

    async def test_of_an_emergency_leave_ordinary_workers(self) -> None:
        """A namespace with its share of the ordinary workers waits for those of emergencies with the rest."""
        queue = self.queue()
        for key in many("evil", 100):
            queue.add(key, urgent=True)
        queue.add(A)
        collected = [await take(queue) for _ in range(self.WORKERS)]
        assert A in collected
        assert sum(key.namespace == "evil" for key in collected) == self.WORKERS - 1

    async def test_a_single_worker_serves_all(self) -> None:
        """Where one worker is all there is nobody is left out."""
        queue = WorkQueue(workers=1, emergency_workers=1)
        for key in many("evil", 3):
            queue.add(key)
        queue.add(A)
        assert [key.namespace for key in await drain(queue)] == ["evil", "shop", "evil", "evil"]
