"""The API server as one process asks it that dies at its writes: as `lab.fixtures.gateway`, in memory."""

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from lab.fixtures.gateway import WATCHED_KINDS, Write, never
from lab.sandbox.instants import Instant
from splitter.kube.client import ApiError
from splitter.kube.paths import ResourcePath
from world.api import Api
from world.kinds import Raw
from world.objects import Objects


class Gateway(Api):
    """Carries a write out that `fatal` picks, keeps its answer back, and answers nothing from then on."""

    def __init__(self, objects: Objects) -> None:
        super().__init__(objects)
        self.fatal: Callable[[Write], bool] = never
        self.struck = threading.Event()
        self.writes: list[Write] = []
        self.others: list[str] = []  # what else is asked for that is no read
        self._versions: set[str] = set()
        self._one_write = asyncio.Lock()

    def reopen(self) -> None:
        """Answer again."""
        self.struck.clear()
        self._one_write = asyncio.Lock()

    async def send(
        self,
        method: str,
        path: ResourcePath,
        body: Raw | None = None,
        *,
        patch: str = "",
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Raw:
        """Answer one request, and note a write."""

        async def answered() -> Raw:
            await self._let_live()
            return await super(Gateway, self).send(
                method, path, body, patch=patch, query=query, timeout_s=timeout_s
            )

        if method == "GET" or "dryRun" in (query or {}) or path.plural not in WATCHED_KINDS:
            if method != "GET":
                self.others.append(f"{method} {path}")
            return await answered()
        async with self._one_write:
            try:
                answer = await answered()
            except ApiError as refused:
                self._note(method, path, body, refused.status, changed=False)
                raise
            version = answer.get("metadata", {}).get("resourceVersion", "")
            self._note(method, path, body, 200, changed=not version or version not in self._versions)
            self._versions.add(version)
        await self._let_live()
        return answer

    async def _let_live(self) -> None:
        if self.struck.is_set():
            await asyncio.Event().wait()

    def _note(self, method: str, path: ResourcePath, body: Raw | None, status: int, *, changed: bool) -> None:
        rest = "/".join(["", *filter(None, (path.name, path.part))]) if path.name else ""
        now, text = Instant.now(), json.dumps(body)
        write = Write(now, now, method, path.namespace, path.plural, rest, text, status, changed)
        if changed and self.fatal(write):
            write = replace(write, fatal=True)
            self.cut_off = True
            self.struck.set()
        self.writes.append(write)
