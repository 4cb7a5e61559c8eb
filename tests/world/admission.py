"""Who may refuse or change a write on its way: policies, quotas, rights. A world has a list of such rules."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from splitter.kube.client import ApiError
from world.kinds import Ref

Raw = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A write as admission sees it; `old` is None for a create, `new` for a delete."""

    verb: str  # create, update, delete
    ref: Ref
    part: str  # status, scale, eviction, binding; empty: the object itself
    old: Raw | None
    new: Raw | None
    user: str
    dry: bool


# Returns the object in place of `new`, or None to leave it. Raises ApiError to refuse.
Rule = Callable[[Request], Raw | None]


def admitted(rules: Iterable[Rule], request: Request) -> Raw | None:
    """Return the object as it may be written."""
    new = request.new
    for rule in rules:
        changed = rule(
            Request(request.verb, request.ref, request.part, request.old, new, request.user, request.dry)
        )
        new = new if changed is None else changed
    return new


def refusing(
    message: str,
    *,
    verb: str = "",
    kind: str = "",
    user: str = "",
    name: str = "",
    only: Callable[[Request], bool] = lambda _: True,
) -> Rule:
    """Return a policy that refuses what it is about, as ValidatingAdmissionPolicies word it."""

    def rule(request: Request) -> None:
        about = (verb, request.verb), (kind, request.ref.kind), (user, request.user), (name, request.ref.name)
        if all(wanted in {"", there} for wanted, there in about) and only(request):
            raise ApiError(
                422,
                "Invalid",
                f"ValidatingAdmissionPolicy 'policy' with binding 'policy' denied request: {message}",
            )

    return rule


def allowing(user: str, rights: Iterable[tuple[str, str]]) -> Rule:
    """Return RBAC for one user: the verbs and kinds that it may write, and no others."""
    known = frozenset(rights)

    def rule(request: Request) -> None:
        verb = "patch" if request.verb == "update" else request.verb
        if request.user == user and (verb, request.ref.kind) not in known:
            plural = request.ref.kind.rpartition("/")[2]
            raise ApiError(
                403,
                "Forbidden",
                f'{plural} "{request.ref.name}" is forbidden: User "{user}" cannot {verb} resource',
            )

    return rule
