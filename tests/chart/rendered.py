"""The chart, rendered by a real Helm without a cluster: what the tests of its values share."""

from typing import Any

import yaml

from e2e.support.helm import CHART, NAMESPACE, RELEASE, Helm

Objects = dict[tuple[str, str, str], dict[str, Any]]
# What the chart puts on every object, beside app.kubernetes.io/name.
LABELS = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version")


def objects(text: str, *, hooks: bool = False) -> Objects:
    """Return manifests by kind, namespace and name; hooks, no part of a release, only when asked."""
    values: Objects = {}
    for raw in filter(None, yaml.load_all(text, Loader=yaml.CSafeLoader)):
        metadata = raw["metadata"]
        if hooks or "helm.sh/hook" not in metadata.get("annotations", {}):
            key = raw["kind"], metadata.get("namespace", ""), metadata["name"]
            assert key not in values, f"{key} is there twice"
            values[key] = raw
    return values


def rendered(
    helm: Helm,
    values: dict[str, Any] | None = None,
    *,
    release: str = RELEASE,
    namespace: str = NAMESPACE,
    hooks: bool = False,
) -> Objects:
    """Return what the chart makes with these values."""
    file = helm.home / "values.yaml"
    file.write_text(yaml.safe_dump(values or {}), encoding="utf-8")
    text = helm("template", release, str(CHART), "--namespace", namespace, "--values", str(file))
    return objects(text, hooks=hooks)


def refusal(helm: Helm, values: dict[str, Any]) -> str:
    """Return Helm's complaint about these values. Raises AssertionError when it has none."""
    file = helm.home / "values.yaml"
    file.write_text(yaml.safe_dump(values), encoding="utf-8")
    answer = helm.ask("template", RELEASE, str(CHART), "--values", str(file))
    assert answer.returncode != 0, f"nobody refuses {values}"
    return answer.stderr


def nested(path: str, value: object) -> dict[str, Any]:
    """Return values with this one set: `nested("image.tag", "1")` is {"image": {"tag": "1"}}."""
    first, _, rest = path.partition(".")
    return {first: nested(rest, value) if rest else value}


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return both values, the second over the first."""
    both = dict(one)
    for key, value in other.items():
        before = both.get(key)
        both[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return both


def at(raw: object, path: str) -> Any:  # noqa: ANN401 (any part of a manifest)
    """Return a part of a manifest, as `spec.template.spec.containers.0.image`; None where there is none."""
    for step in path.split("."):
        if isinstance(raw, list) and step.isdigit() and int(step) < len(raw):
            raw = raw[int(step)]
        elif isinstance(raw, dict):
            raw = raw.get(step)
        else:
            return None
    return raw
