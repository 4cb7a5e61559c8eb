"""RBAC: what Roles and their bindings let a user do. Source: plugin/pkg/auth/authorizer/rbac."""

from splitter.kube.client import ApiError
from world.kinds import Raw, Ref
from world.objects import Objects

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, ROLE_BINDINGS = f"{_RBAC}/roles", f"{_RBAC}/rolebindings"
# Who may do everything, bound or not.
_TRUSTED = frozenset({"admin", "splitter"})
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "WATCH": "watch"}


def check(objects: Objects, user: str, method: str, ref: Ref, part: str) -> None:
    """Raise ApiError (403) where no rule allows it."""
    verb = _VERBS.get(method, "get" if ref.name else "list")
    group = ref.kind.removeprefix("/apis/").partition("/")[0] if ref.kind.startswith("/apis/") else ""
    plural = ref.kind.rpartition("/")[2]
    resource = f"{plural}/{part}" if part else plural
    if user in _TRUSTED or any(
        _allows(rule, verb, group, resource) for rule in _rules(objects, user, ref.namespace)
    ):
        return
    what = f'{plural} "{ref.name}" is forbidden' if ref.name else f"{plural} is forbidden"
    where = f'in the namespace "{ref.namespace}"' if ref.namespace else "at the cluster scope"
    message = f'{what}: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    raise ApiError(403, "Forbidden", message)


def _rules(objects: Objects, user: str, namespace: str) -> list[Raw]:
    rules: list[Raw] = []
    for binding in objects.all(ROLE_BINDINGS, namespace) if namespace else ():
        if any(one.get("name") == user for one in binding.get("subjects") or ()):
            role = objects.find(Ref(ROLES, namespace, binding["roleRef"]["name"]))
            rules += (role or {}).get("rules") or []
    return rules


def _allows(rule: Raw, verb: str, group: str, resource: str) -> bool:
    asked = (("verbs", verb), ("apiGroups", group), ("resources", resource))
    return all({"*", wanted}.intersection(rule.get(name) or ()) for name, wanted in asked)
