"""Tracks which watches are current: those that all workloads need, and those of each namespace.

`operator` waits here before it leads, the reconciler asks before each reconcile. Where a watch cannot list,
as much stands still as needs it: with `watch_namespaces` that is its namespace, which may be gone, not there
yet or not allowed, and else everything. The others go on, and the namespace is looked after once it is seen.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from math import inf

from splitter.kube.client import ApiError
from splitter.kube.pace import Backoff
from splitter.kube.watch import Reflector

logger = logging.getLogger("splitter.views")

ALL = ""  # the name of what all workloads need
_LOOK_S = 0.2
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 10.0
# Some 40 questions each time.
_RIGHTS_AGAIN_S = 60.0


async def _none_missing(_: str) -> str:
    return ""


class Views:
    """The collections that must be known before anything is decided, by the namespace that needs them."""

    def __init__(
        self,
        reflectors: Iterable[Reflector] = (),
        written: Collection[Reflector] = (),
        missing_rights: Callable[[str], Awaitable[str]] = _none_missing,
        crowded: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`written`: what splitter itself writes. `missing_rights`: says which are missing in a namespace.

        `crowded`: whether more is there than is kept of a namespace.
        """
        self._crowded = crowded
        self._needed: dict[str, list[Reflector]] = {ALL: []}
        for reflector in reflectors:
            if reflector.awaited:
                self._needed.setdefault(reflector.namespace, []).append(reflector)
        self._written = written
        self._missing_rights = missing_rights
        self._unknown: set[str] = set()  # not yet seen as they are since this process leads
        self._forbidden: set[str] = set()  # namespaces in which rights were missing
        self._since_s = 0.0

    @property
    def namespaces(self) -> list[str]:
        """Those that have collections of their own."""
        return [namespace for namespace in self._needed if namespace != ALL]

    @property
    def waiting_s(self) -> float:
        """For how long this leader has waited for what all workloads need; 0: it does not wait."""
        return time.monotonic() - self._since_s if ALL in self._unknown else 0.0

    def forbid(self, namespaces: Iterable[str]) -> None:
        """Leave these alone until no right is missing there."""
        self._forbidden.update(namespaces)

    def begin(self) -> None:
        """Take note that this process leads from now on: others have written until now."""
        self._unknown, self._since_s = set(self._needed), time.monotonic()

    def is_current(self, namespace: str) -> bool:
        """Whether everything that its workloads need was seen since this process leads."""
        return not (self._unknown & {ALL, namespace} or self._crowded(namespace))

    def failing(self) -> list[Reflector]:
        """Return the broken watches that block some workload now."""
        return [one for needed in self._needed.values() for one in needed if one.failing]

    def failing_for(self, namespace: str) -> Reflector | None:
        """Return a watch that the workloads of a namespace need, and whose view is old."""
        needed = (*self._needed[ALL], *self._needed.get(namespace, ()))
        return next((one for one in needed if one.failing), None)

    async def filled(self, within_s: float) -> list[Reflector]:
        """Wait for the first lists. Returns the required watches that still have none.

        That is what all workloads need, and a namespace's own where there is no other namespace. A namespace
        that is refused blocks nobody.
        """
        with_own = [one for namespace in self.namespaces for one in self._needed[namespace]]
        waits = [one.synced.wait() for one in self._needed[ALL]] + [one.answered.wait() for one in with_own]
        tasks = [asyncio.ensure_future(wait) for wait in waits]
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        for task in tasks:
            task.cancel()
        late = {name: [one for one in all_ if not one.synced.is_set()] for name, all_ in self._needed.items()}
        if self.namespaces and all(late[namespace] for namespace in self.namespaces):
            return [one for ones in late.values() for one in ones]
        return late[ALL]

    async def catch_up(self, namespace: str = ALL, *, after_others: bool) -> None:
        """Return when a namespace, or what all need, is seen as it is now; tries until it is.

        `after_others`: somebody else may have led. That process cannot write any more, so what is listed
        from now on has all of it: its twins and marks are no foreign hands, its decisions, in the Splits,
        are ours.
        """
        waits = Backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S, inf)
        began_s, logged = time.monotonic(), ""
        while True:
            waited_s = 0.0
            if late := [one for one in self._needed[namespace] if not one.follows]:
                trouble, waited_s = f"{late[0].path}: {late[0].error or 'not listed yet'}", _LOOK_S
            else:
                trouble = await self._trouble(namespace, after_others=after_others)
            if not trouble:
                break
            if trouble != logged and (time.monotonic() - began_s > _LONGEST_WAIT_S or not waited_s):
                logged = trouble
                where = f"in namespace {namespace}" if namespace else "anywhere"
                logger.warning("nothing is done %s until it can be seen: %s", where, trouble)
            rights = namespace in self._forbidden and not waited_s
            await asyncio.sleep(waited_s or (_RIGHTS_AGAIN_S if rights else waits.failed_s()))
        if logged and namespace:
            logger.info("namespace %s is looked after from now on", namespace)
        self._unknown.discard(namespace)

    async def _trouble(self, namespace: str, *, after_others: bool) -> str:
        """List what others may have written; return why nothing can be done there yet."""
        try:
            if namespace in self._forbidden:
                if missing := await self._missing_rights(namespace):
                    return missing
                self._forbidden.discard(namespace)
            if after_others:
                mine = [one.list_once() for one in self._written if one.namespace == namespace]
                await asyncio.gather(*mine)
        except ApiError as error:
            return str(error)
        return ""
