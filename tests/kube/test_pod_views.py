"""Pods as the core sees them: which of them stand where their twin starts none."""

from typing import Any

import pytest

from builders import pod, replica_set
from kube.raw import deployment, node, spot_node
from splitter.core.nodes.signals import assess
from splitter.kube import parse
from splitter.kube.cache import Cache
from splitter.kube.pod_views import PodViews

SPOT = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}
NOT_SPOT = {**SPOT, "operator": "NotIn"}


def affinity(expression: dict[str, Any], *, required: bool = True) -> dict[str, Any]:
    """Return the pod template's rules."""
    term = {"matchExpressions": [expression]}
    rule: dict[str, Any]
    if required:
        rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    else:
        rule = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": term}]}
    return {"affinity": {"nodeAffinity": rule}, "containers": []}


@pytest.mark.parametrize(
    ("pool", "rules", "on", "strays"),
    [
        ("spot", affinity(SPOT), "on-demand", {"uid-a"}),
        ("spot", affinity(SPOT), "spot", set()),
        ("spot", affinity(SPOT), "nobody-knows", set()),
        ("spot", affinity(SPOT, required=False), "on-demand", set()),  # it may stand there
        ("spot", {"containers": []}, "on-demand", set()),  # as a template of one's own may have it
        (
            "spot",
            {"containers": [], "nodeSelector": {"karpenter.sh/capacity-type": "spot"}},
            "on-demand",
            {"uid-a"},
        ),
        ("on-demand", affinity(NOT_SPOT), "spot", {"uid-a"}),
        ("on-demand", affinity(NOT_SPOT), "on-demand", set()),
        ("on-demand", {"containers": []}, "spot", set()),
    ],
)
def test_strays(pool: str, rules: dict[str, Any], on: str, strays: set[str]) -> None:
    """A pod on a node of the other pool is one only where the template keeps new ones off that node."""
    known = Cache(assess, lambda *_, **__: None)
    known.nodes.upsert(spot_node("spot", 1))
    tainted = {"taints": [{"key": "full", "effect": "NoSchedule"}], "unschedulable": True}
    known.nodes.upsert({**node("on-demand", 2), "spec": tainted})
    raw = deployment(
        f"web-{pool}",
        {"template": {"metadata": {"labels": {"app": "web"}}, "spec": rules}},
        labels={"splitter.io/pool": pool, "splitter.io/source": "web", "splitter.io/split": "twin"},
    )
    stands = [pod("a", node=on, on_spot=on == "spot"), pod("new", node=None)]
    assert PodViews(known).strays(parse.twin(raw), [replica_set(of=stands)]) == strays
