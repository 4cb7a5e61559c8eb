"""Secrets in the workloads of all end-to-end tests, which nothing that splitter says may repeat.

A variable, an argument and an annotation of every pod template have one. At the end of each test `namespaces`
looks for them in what the controller has logged meanwhile, in its Events and in the Splits of the test's
namespace; each controller's log is looked through once more when it ends. A promise of docs/security.md.
"""

from collections.abc import Iterable
from typing import Any

from splitter.sandbox import Api

PLANTED = "hunter2-planted"
VARIABLE = {"name": "PLANTED", "value": f"{PLANTED}-in-a-variable"}
ARGUMENT = f"--planted={PLANTED}-in-an-argument"
ANNOTATIONS = {"example.com/planted": f"{PLANTED}-in-an-annotation"}
_OURS = "splitter.io/splitter"


def in_container() -> dict[str, Any]:
    """Return the fields of a container with secrets in them."""
    return {"env": [dict(VARIABLE)], "args": ["serve", ARGUMENT]}


def verify_kept(what: str, lines: Iterable[object]) -> None:
    """Raise AssertionError with each line of something that splitter said which repeats a secret."""
    collected = [text for line in lines if PLANTED in (text := str(line))]
    assert not collected, f"{what} repeats a value of a user's pod template:\n" + "\n".join(collected)


def verify_kept_in(api: Api, namespace: str) -> None:
    """Raise AssertionError when an Event of splitter's, or a Split, of a namespace repeats a secret."""
    events = api.find(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events") or {}
    ours = [raw for raw in events.get("items", ()) if raw.get("reportingController") == _OURS]
    verify_kept("an Event of splitter's", (raw.get("note") for raw in ours))
    splits = api.find(f"/apis/splitter.io/v1alpha1/namespaces/{namespace}/splits") or {}
    verify_kept("a Split", splits.get("items", ()))
