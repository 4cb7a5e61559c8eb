"""A Split in the middle of a loss, as the API server gives it."""

import copy
from typing import Any

from splitter.kube.as_user import key_of
from splitter.plugin.cli.explain import explained
from splitter.plugin.cli.splits import status_of


def condition(kind: str, status: str, message: str = "") -> dict[str, str]:
    """Make one condition."""
    return {
        "type": kind,
        "status": status,
        "reason": "SpotInterrupted",
        "message": message,
        "lastTransitionTime": "2026-11-21T14:10:00Z",
    }


SPLIT: dict[str, Any] = {
    "metadata": {"namespace": "shop", "name": "web"},
    "spec": {"source": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    "status": {
        "state": "Moving",
        "reason": "SpotInterrupted",
        "message": "scale on-demand 4 -> 7 (+3): 3 of 6 spot replicas are on doomed nodes",
        "desired": 10,
        "ready": 7,
        "cover": 3,
        "onDemand": {"wanted": 4, "spec": 7, "ready": 4, "doomed": 0, "pending": 1},
        "spot": {"wanted": 6, "spec": 6, "ready": 3, "doomed": 3, "pending": 0},
        "nodes": [
            {
                "name": "spot-a",
                "state": "Doomed",
                "replicas": 3,
                "signal": "event SpotInterrupted",
                "deadline": "2026-11-21T14:12:00Z",
            },
            {"name": "spot-b", "state": "Doomed", "replicas": 1, "signal": "cordoned (spec.unschedulable)"},
            {"name": "spot-c", "state": "Lost", "replicas": 2, "signal": "condition Ready=Unknown"},
        ],
        "policy": {"onDemandBase": 2, "spotPercent": 80, "soak": "600s", "freeze": False},
        "policyFrom": {"onDemandBase": "Source", "spotPercent": "Namespace", "soak": "Default"},
        "memory": {
            "policyAnnotations": {"splitter.io/on-demand-base": "2", "splitter.io/spot-percent": "80"},
            "rebalance": {"lastLoss": "2026-11-21T14:10:00Z", "lost": True, "soakSeconds": 1200.0},
        },
        "conditions": [
            condition("Eligible", "True"),
            condition("PolicyValid", "True"),
            condition("Ready", "False", "7 of 10 replicas are available"),
            condition("Progressing", "True"),
            condition("SpotAvailable", "False", "3 of 6 wanted spot replicas are available"),
            condition("Conflict", "False"),
        ],
        "decisions": [
            {"time": "2026-11-21T14:00:00Z", "reason": "Balanced", "message": "4 on on-demand and 6 on spot"},
            {"time": "2026-11-21T14:09:00Z", "reason": "WriteDenied", "message": "no"},
            {"time": "2026-11-21T14:09:30Z", "reason": "WriteDenied", "message": "no"},
        ],
    },
}


def split(name: str = "web", namespace: str = "shop", **status: object) -> dict[str, Any]:
    """Return the example under another name, with some fields of its status replaced."""
    values = copy.deepcopy(SPLIT)
    values["metadata"] = {"namespace": namespace, "name": name}
    values["spec"]["source"]["name"] = name
    values["status"].update(status)
    return values


def lines_of(one: dict[str, Any]) -> list[str]:
    """Explain a Split."""
    return explained(key_of(one), status_of(one))
