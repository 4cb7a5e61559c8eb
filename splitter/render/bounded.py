"""Renders untrusted or large templates in a limited child process, and others directly.

The reconciler, a preview and `splitter render` render through this, each twin by itself. A set that somebody
brings as a ConfigMap is compiled and rendered in the child (`child`); so is one that travels with splitter
where the source is large. Nobody is blocked meanwhile: a thread waits for the child, and the caller for the
thread. Renderings wait for each other by set and namespace, so that none waits for more than one of each
other's.

What reaches a limit is remembered by the template's text and not tried again until that changes, or for ten
minutes where somebody else may be to blame; with a large source it is remembered with the source.
The child's answer is data of whoever wrote the template: it is bounded, looked at, and all that is splitter's
is put right here, after it.
"""

import asyncio
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from math import inf
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from splitter.core.desired.manifest import Manifest, mapping_at
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Rendered
from splitter.core.replica import Pool
from splitter.core.template_sets import TemplateSet
from splitter.render import Order, Renderer
from splitter.render.child import MAX_WHAT
from splitter.render.errors import LimitError, Reached, TemplateError
from splitter.render.limits import SMALL_BYTES, Limit, Limits, limit_message
from splitter.render.process import ChildProcess, EndedError, LimitReachedError, UnavailableError
from splitter.render.templates import checked

T = TypeVar("T")

logger = logging.getLogger("splitter.templates")

# Texts that reached a limit; some 300 bytes each.
_REMEMBERED: Final = 1_000
# What is tried once more has at least so long.
_LEAST_S: Final = 1.0


class BoundedRenderer:
    """Renders as `Renderer` does, within limits. Used by one event loop at a time; `close` ends the child."""

    def __init__(self, renderer: Renderer, limits: Limits | None = None) -> None:
        self._renderer = renderer
        self._limits = limits or Limits()
        self._child = ChildProcess(self._limits)
        # The one thread that starts the child, for it ends with this, and that waits for it.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="template-sets")
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        # Of the thread's: what reached a limit, until when it is not tried again.
        self._broken: OrderedDict[bytes, tuple[Reached, float]] = OrderedDict()

    def close(self) -> None:
        """End the child, and wait until it has."""
        self._child.close()
        self._thread.submit(self._child.end)
        self._thread.shutdown()

    @property
    def child_pid(self) -> int | None:
        """The process that renders now, if one was needed yet."""
        return self._child.pid

    def template_set(self, name: str) -> TemplateSet | None:
        """Return the set of this name as it is now: equal to the one before, it renders the same twins."""
        return self._renderer.template_set(name)

    async def render(self, source: Manifest, pool: Pool, policy: Policy, size: int) -> Rendered:
        """Return one twin of a source of `size` bytes as JSON. Raises SplitterError, as `Renderer.render`.

        A LimitError where a limit is reached, or the child ends twice over it.
        """
        order = self._renderer.order(source, pool, policy)
        is_small = self._renderer.weight(source, size) <= SMALL_BYTES
        if is_small and not order.template_set.config_map:
            return self._renderer.render(source, pool, policy)
        namespace = str(mapping_at(source, "metadata").get("namespace", ""))
        large = None if is_small else size
        work = partial(self._render_apart, order, source, pool, policy, large)
        return await self._apart((order.template_set.name, namespace), work)

    async def faults(self, template_set: TemplateSet) -> tuple[str, ...]:
        """Return what is wrong with a set as far as that can be told without a workload to render."""
        try:
            orders = self._renderer.orders(template_set)
        except SplitterError as error:
            return (error.message,)
        messages = [
            await self._apart((template_set.name, ""), partial(self._fault, order)) for order in orders
        ]
        return tuple(message for message in messages if message)

    async def _apart(self, whose: tuple[str, str], work: Callable[[], T]) -> T:
        """Run something in the thread, after all earlier work of the same set and namespace."""
        turn = self._locks.get(whose)
        if turn is None:
            turn = self._locks[whose] = asyncio.Lock()
        async with turn:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _fault(self, order: Order) -> str:
        try:
            self._asked(order, None, None)
        except SplitterError as error:
            return error.message
        return ""

    def _render_apart(
        self, order: Order, source: Manifest, pool: Pool, policy: Policy, large: int | None
    ) -> Rendered:
        variables = self._renderer.variables(source, pool, policy)
        answer = self._asked(order, variables, large)
        try:
            manifest = checked(answer, order.kind)
        except (TypeError, ValueError) as problem:
            raise order.fault(None, str(problem)) from problem
        return self._renderer.finished(order, manifest, source, pool, policy)

    def _asked(self, order: Order, variables: Mapping[str, object] | None, large: int | None) -> object:
        """Return what the child makes of a template, nothing where it only reads it. Raises TemplateError.

        `large` is the size of the source in bytes where it is not small: then it may be to blame.
        """
        request = self._request(order, variables)
        blamed = sha256(f"{order.where}\0{order.text}".encode(errors="surrogatepass"))
        if large is not None:
            blamed.update(request)
        broken, until = self._broken.get(blamed.digest(), (None, 0.0))
        if broken is not None and time.monotonic() < until:
            raise LimitError(broken)
        try:
            return self._made(order, request, large)
        except LimitError as error:
            until = inf if error.lasting else time.monotonic() + self._limits.again_s
            self._broken[blamed.digest()] = error.reached, until
            if len(self._broken) > _REMEMBERED:
                self._broken.popitem(last=False)
            raise

    def _request(self, order: Order, variables: Mapping[str, object] | None) -> bytes:
        request = {
            "text": order.text,
            "where": order.where,
            "kind": order.kind,
            "variables": variables,
            "cpu_s": self._limits.cpu_s,
        }
        try:
            return json.dumps(request, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as problem:
            raise order.fault(None, str(problem)) from problem

    def _made(self, order: Order, request: bytes, large: int | None) -> object:
        try:
            answer = self._answer(request)
        except LimitReachedError as error:
            raise self._broke(
                order, None, limit_message(error.limit, self._limits), large, error.limit
            ) from error
        except EndedError as error:
            what = f"rendering it ended the process that did it, twice ({error})"
            raise self._broke(order, None, what, large) from error
        except UnavailableError as error:
            what = f"the process that renders it cannot be started: {error}"
            advice = "It is tried again within minutes; see splitter's log, and its limit of memory."
            name = order.template_set.name
            raise TemplateError(name, order.where, None, what, advice, lasting=False) from error
        match answer:
            case {"manifest": manifest}:
                return manifest
            case {"fault": [int() | None as line, str(what)]} if len(what) <= MAX_WHAT:
                raise order.fault(line, what)
            case {"memory": int() | None as line}:
                raise self._broke(order, line, limit_message(Limit.MEMORY, self._limits), large, Limit.MEMORY)
            case _:
                self._child.end()
                raise self._broke(order, None, "rendering it gave no answer that makes sense", large)

    def _answer(self, request: bytes) -> object:
        """Return the child's answer. What ends a child but CPU and time is tried once more, in a new one.

        Somebody else may have killed it, or an earlier rendering left it little memory. Both have one time
        together.
        """
        began = time.monotonic()
        try:
            answer = self._parsed(self._child.ask(request, self._limits.time_s))
        except EndedError as error:
            logger.warning("a rendering ended its process, and is tried once more: %s", error)
        else:
            if not (isinstance(answer, dict) and "memory" in answer):
                return answer
            self._child.end()
        left_s = max(_LEAST_S, began + self._limits.time_s - time.monotonic())
        answer = self._parsed(self._child.ask(request, left_s))
        if isinstance(answer, dict) and "memory" in answer:
            self._child.end()
        return answer

    def _parsed(self, answer: bytes) -> object:
        try:
            return json.loads(answer.decode(errors="surrogatepass"))
        except (ValueError, RecursionError) as error:
            self._child.end()
            raise EndedError(f"its answer is no JSON: {error}") from error

    def _broke(
        self, order: Order, line: int | None, what: str, large: int | None, limit: Limit | None = None
    ) -> LimitError:
        """Return the error for the users of a set, or of a large source."""
        change, remedy = "it changes", "shorten its loops and what it makes of long values"
        if large is not None:
            change = "it or the workload changes"
            remedy = f"make the workload's manifest smaller, which has {large} bytes, or use another set"
        lasting = limit in {Limit.CPU, Limit.MEMORY}  # else the machine, or somebody else, may be why
        again = (
            "not tried again until" if lasting else f"tried again after {self._limits.again_s:g} s, or when"
        )
        advice = f"It is {again} {change}: {remedy}, and try it with `splitter render`."
        return LimitError(Reached(order.template_set.name, order.where, line, what, advice, lasting))
