"""A process of splitter's over the world: caches, reconciler, writer, watches; without kopf and election."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from jinja2 import Template

from splitter.operator import _Operator as OperatorProcess  # what kopf calls
from splitter.render.errors import Fault
from splitter.render.sandbox import Environment
from splitter.settings import Settings
from world.cluster import Cluster

_COMPILED: dict[tuple[str, str], Template] = {}


def compiling_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a text that one process has compiled be so for all: each test has several of them."""
    compile_template = Environment.template

    def template(environment: Environment, text: str, file: str, fault: Fault) -> Template:
        if (text, file) not in _COMPILED:
            _COMPILED[text, file] = compile_template(environment, text, file, fault)
        return _COMPILED[text, file]

    monkeypatch.setattr(Environment, "template", template)


@asynccontextmanager
async def filled(operator: OperatorProcess) -> AsyncIterator[OperatorProcess]:
    """Fill the caches of a process that does not lead yet; what it has begun ends with the block."""
    for reflector in operator._reflectors:
        operator._spawn(reflector.run())
    await operator._fill()
    try:
        yield operator
    finally:
        operator._tasks.reverse()  # the term first
        for task in operator._tasks:
            task.cancel()
            await asyncio.wait((task,))
        operator._renderer.close()


@asynccontextmanager
async def splitting(cluster: Cluster, **settings: object) -> AsyncIterator[OperatorProcess]:
    """Run a process that leads, as one does that takes part in no election."""
    chosen = {"own_namespace": "splitter", "leader_election": "off", **settings}
    operator = OperatorProcess(cluster.api, Settings.model_validate(chosen))
    try:
        async with filled(operator):
            operator._cache.find_vanished()
            operator._spawn(operator._crowded.run())
            operator._terms = operator._spawn(operator._serve_terms())
            yield operator
    finally:
        if operator.failure is not None:
            raise operator.failure
