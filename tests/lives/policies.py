"""Admission policies of a namespace: what its administrator forbids or changes there while a test says so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lab.fixtures.shop import Shop
from world.admission import Request, Rule, refusing
from world.kinds import Raw


@contextmanager
def forbidden(shop: Shop, resource: str, is_allowed: Callable[[Raw], bool], message: str) -> Iterator[None]:
    """Have a policy judge each new or changed object of a resource, as a dry run of it, too."""

    def refuses(request: Request) -> bool:
        return request.new is not None and _is_of(request, resource) and not is_allowed(request.new)

    with in_force(shop, refusing(message, only=refuses)):
        yield


@contextmanager
def changed(shop: Shop, resource: str, change: Callable[[Raw], Raw]) -> Iterator[None]:
    """Have a policy change each new object of a resource."""

    def rule(request: Request) -> Raw | None:
        if request.verb != "create" or request.new is None or not _is_of(request, resource):
            return None
        return change(request.new)

    with in_force(shop, rule):
        yield


def _is_of(request: Request, resource: str) -> bool:
    return request.ref.kind.endswith(f"/{resource}") and not request.part


@contextmanager
def in_force(shop: Shop, rule: Rule) -> Iterator[None]:
    """Have each write meet a rule."""
    world: Any = shop.sandbox
    rules: list[Rule] = world.cluster.objects.rules
    rules.append(rule)
    try:
        yield
    finally:
        rules.remove(rule)
