"""Who else writes a workload's pause and replicas, as the API server keeps it."""

from typing import Any

from splitter.kube.client import FIELD_MANAGER
from splitter.plugin.core.other_tools import Writer
from splitter.plugin.kube.field_managers import writers

EARLY, LATE = "2026-01-05T10:00:00Z", "2026-01-05T10:00:09Z"


def entry(manager: str, *fields: str, time: str = EARLY, **more: str) -> dict[str, Any]:
    """Return an entry of `managedFields`."""
    return {
        "manager": manager,
        "time": time,
        "fieldsV1": {"f:spec": {f"f:{one}": {} for one in fields}},
        **more,
    }


def test_the_last_writer_comes_first() -> None:
    """With which of both fields it wrote, and whether by the scale subresource; splitter is left out."""
    entries = [
        entry("helm", "paused", "template"),
        entry("hpa", "replicas", time=LATE, subresource="scale"),
        entry(FIELD_MANAGER, "paused", time=LATE),
        entry("kubectl", "template", time=LATE),
    ]
    assert writers({"metadata": {"managedFields": entries}}) == (
        Writer("hpa", frozenset({"replicas"}), LATE, scales=True),
        Writer("helm", frozenset({"paused"}), EARLY),
    )


def test_no_more_is_read_than_an_api_server_keeps() -> None:
    """Of entries and of the length of a name."""
    many = [entry("x" * 10_000, "paused") for _ in range(1_000)]
    read = writers({"metadata": {"managedFields": many}})
    assert len(read) == 100
    assert {len(one.name) for one in read} == {128}
