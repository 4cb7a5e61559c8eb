"""The default templates, proven by pairs: `<case>.input.yaml` is a source, `<case>.output.yaml` its twins.

`SPLITTER_REGENERATE=1 pytest tests/templates` writes the outputs anew; a person reviews the difference.
With `SPLITTER_DATA` naming a folder that holds online-boutique.yaml, a real application is rendered too.
"""

import json
import os
from pathlib import Path

import pytest
import yaml

from splitter.bundled import bundled_path
from splitter.core.desired.scheduling import NodePresets
from splitter.core.labels_annotations.policy import Policy, parse_policy
from splitter.core.replica import Pool
from splitter.render import Renderer, read_template_sets

HERE = Path(__file__).parent
CASES = sorted(path.name.removesuffix(".input.yaml") for path in HERE.glob("*.input.yaml"))

# Two providers, so that terms are ORed and expressions ANDed; the full table is core.nodes' to test.
PRESETS = NodePresets(
    spot_terms=(
        {"matchExpressions": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]},
        {"matchExpressions": [{"key": "cloud.google.com/gke-spot", "operator": "In", "values": ["true"]}]},
    ),
    on_demand_terms=(
        {
            "matchExpressions": [
                {"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["spot"]},
                {"key": "cloud.google.com/gke-spot", "operator": "NotIn", "values": ["true"]},
            ]
        },
    ),
    spot_tolerations=(
        {
            "key": "kubernetes.azure.com/scalesetpriority",
            "operator": "Equal",
            "value": "spot",
            "effect": "NoSchedule",
        },
    ),
)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    """Return a renderer of the templates that travel with splitter."""
    return Renderer(read_template_sets(bundled_path("templates")), PRESETS)


def twins(renderer: Renderer, source: dict[str, object]) -> list[dict[str, object]]:
    """Return both twins of a source, rendered with the policy that its annotations ask for."""
    metadata = source["metadata"]
    assert isinstance(metadata, dict)
    policy = parse_policy(metadata.get("annotations") or {}, Policy()).policy
    assert policy is not None
    return [json.loads(renderer.render(source, pool, policy).manifest_json) for pool in Pool]


@pytest.mark.parametrize("case", CASES)
def test_twins(renderer: Renderer, case: str) -> None:
    """Each source gives exactly the twins that stand beside it."""
    source = yaml.safe_load((HERE / f"{case}.input.yaml").read_text(encoding="utf-8"))
    expected = HERE / f"{case}.output.yaml"
    rendered = twins(renderer, source)
    if os.environ.get("SPLITTER_REGENERATE"):
        text = yaml.safe_dump_all(rendered, explicit_start=True, allow_unicode=True, width=110)
        expected.write_text(text, encoding="utf-8")
    assert rendered == list(yaml.safe_load_all(expected.read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", CASES)
def test_pods_lose_nothing(renderer: Renderer, case: str) -> None:
    """Whatever a pod template says arrives in both twins; only affinity, tolerations and labels grow."""
    source = yaml.safe_load((HERE / f"{case}.input.yaml").read_text(encoding="utf-8"))
    assert_pods_lose_nothing(source, twins(renderer, source))


def assert_pods_lose_nothing(source: dict[str, object], rendered: list[dict[str, object]]) -> None:
    """Compare the pod templates, but for what a twin adds."""
    wanted = pod_template(source)
    for twin in rendered:
        result = pod_template(twin)
        assert result["spec"] | {"affinity": 0, "tolerations": 0} == wanted["spec"] | {
            "affinity": 0,
            "tolerations": 0,
        }
        for key in ("labels", "annotations"):
            there, written = result["metadata"].get(key, {}), wanted["metadata"].get(key) or {}
            orders = {name for name in written if "reloader.stakater.com/" in name}  # it would edit the twins
            assert {name: written[name] for name in written.keys() - orders}.items() <= there.items()
            assert not orders & there.keys()


def pod_template(manifest: dict[str, object]) -> dict[str, dict[str, dict[str, object]]]:
    """Return the pod template of a workload."""
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    template = spec["template"]
    assert isinstance(template, dict)
    return template


def test_online_boutique(renderer: Renderer) -> None:
    """Every Deployment of a real application renders, and no pod loses a field."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    manifest = Path(os.environ.get("SPLITTER_DATA", beside)) / "online-boutique.yaml"
    if not manifest.is_file():
        pytest.skip(f"there is no {manifest.name}; SPLITTER_DATA names its folder")
    text = manifest.read_text(encoding="utf-8")
    sources = [one for one in yaml.safe_load_all(text) if one and one["kind"] == "Deployment"]
    assert len(sources) == 12
    for source in sources:
        assert_pods_lose_nothing(source, twins(renderer, source))
