"""docs/reference/rbac.md says what manifests/rbac.yaml gives, rule by rule, in the words of its comments."""

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from rbac import Rule, rules

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "rbac.md"
AGGREGATED = rules("aggregated-roles.yaml")
SOURCE_STATUS = rules("source-status.yaml")
HEAD = """\
# Rights

<!-- Written from the comments of manifests/rbac.yaml by tests/test_rbac_reference.py. To write it anew:
     SPLITTER_REGENERATE=1 pytest tests/test_rbac_reference.py -->

What splitter's service account, `splitter` in `splitter-system`, may do, and why. It never asks for
Secrets. But the right to create workloads is as strong as reading every Secret where it applies, since a
pod can mount what it names: say so to whoever approves this.

- **A right that is missing** is named at the start: splitter asks for each, and leaves with `Forbidden` and
  the list. One that is *optional* may be taken away: splitter says once, in its log, what it does without,
  and asks again, ever more seldom, up to every few minutes.
- **No right is idle**: an end-to-end test lets workloads live through everything, sees every request, and
  fails for a right that nobody used as for one that was missing.
- **A namespaced install** ([how](../how-to/install.md#for-some-namespaces-only)) has the rights of
  `splitter` as a Role in each namespace that it watches, and of `splitter-cluster` all but those on
  namespaces. Nodes have no namespace, so reading them cannot be given for less than the cluster; without it
  splitter does not start, for it would not know which pods are on spot.
- **The Helm chart** gives the same, and, while `helm uninstall` runs, to an account of its own
  (`splitter-uninstall`): list and patch Deployments, list Splits.
"""
ON_REQUEST = """\
## On request

`manifests/source-status.yaml` (in the chart `sourceStatus.enabled`) gives splitter's account one right more.
Without it splitter divides workloads all the same, says once in its log that the condition is not written,
and asks again, ever more seldom, up to every five minutes.
"""
USERS = """\
## Rights of users

`manifests/aggregated-roles.yaml` adds these to Kubernetes' own ClusterRoles: those of `splitter-view` to
`view`, `edit` and `admin`, those of `splitter-edit` to `edit` and `admin`. A user who has one of these in a
namespace needs no role of splitter's to read, or to delete, its Splits. splitter does not need them: leave
the file out if you give these rights by roles of your own.
"""


def heading(rule: Rule) -> str:
    """Return the heading of a role."""
    where = f" in `{rule.namespace}`" if rule.namespace else ""
    return f"## {rule.kind} `{rule.role}`{where}"


def row(rule: Rule) -> str:
    """Return one rule as a line of a table."""
    kinds = (f"{name}.{group}" if group else name for group in rule.groups for name in rule.resources)
    return f"| {', '.join(f'`{kind}`' for kind in kinds)} | {', '.join(rule.verbs)} | {rule.comment} |"


def reference() -> str:
    """Return the whole page."""
    one_more = (ON_REQUEST, *tables(SOURCE_STATUS))
    return "\n".join([HEAD, *tables(rules()), *one_more, USERS, *tables(AGGREGATED)])


def tables(those: list[Rule]) -> Iterator[str]:
    """Yield the lines of the table of each role."""
    for title, one in groupby(those, heading):
        yield from (title, "", "| on | may | why |", "|---|---|---|", *map(row, one), "")


class TestReference:
    def test_says_what_the_file_gives(self) -> None:
        """The page is the one that the file makes."""
        if os.environ.get("SPLITTER_REGENERATE"):
            REFERENCE.write_text(reference(), encoding="utf-8")
        assert REFERENCE.read_text(encoding="utf-8") == reference()

    @pytest.mark.parametrize(
        "rule", [*rules(), *SOURCE_STATUS, *AGGREGATED], ids=lambda rule: f"{rule.role}-{rule.resources[0]}"
    )
    def test_each_rule_says_why(self, rule: Rule) -> None:
        """No rule is without a comment, and none gives everything."""
        assert len(rule.comment) > 20
        assert "*" not in {*rule.groups, *rule.resources, *rule.verbs}
        assert "secrets" not in rule.resources

    def test_gives_one_right_on_request(self) -> None:
        """It patches the status of sources, and is optional."""
        assert all(rule.optional for rule in SOURCE_STATUS)
        given = {right for rule in SOURCE_STATUS for right in rule.rights}
        assert {(right.group, right.resource, right.verb) for right in given} == {
            ("apps", "deployments/status", "patch"),
            ("apps", "statefulsets/status", "patch"),
        }

    def test_gives_no_way_to_more(self) -> None:
        """No Secret, no way into a pod, no token, no further right; of others' kinds nothing is written."""
        given = [right for rule in rules() for right in rule.rights]
        assert not {right.verb for right in given} & {"escalate", "bind", "impersonate", "deletecollection"}
        parts = {right.resource for right in given if "/" in right.resource}
        assert parts == {"pods/eviction", "splits/status"}
        written = {right.resource for right in given if right.verb not in {"get", "list", "watch"}}
        assert written == {
            "deployments",
            "statefulsets",
            "replicasets",
            "pods",
            "pods/eviction",
            "poddisruptionbudgets",
            "events",
            "splits",
            "splits/status",
            "placements",
            "leases",
            "selfsubjectaccessreviews",
        }
        assert {right.namespace for right in given if right.resource == "configmaps"} == {
            "kube-system",
            "splitter-system",
        }
