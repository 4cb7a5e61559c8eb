"""What else than the source itself may forbid a split: policies, quotas, rights, volumes, ports.

The answer comes from the dry run or from a look around, before anything is written, and the workload is
split by itself when the cause has gone.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.support.refusals import ASKED, REPLICAS, Untouched, refused
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until

pytestmark = pytest.mark.e2e


class TestDryRun:
    def test_a_right_taken_away(self, shop: Shop) -> None:
        """Found before the pause, named with the verb; given back, it is split."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        with right_taken_away(shop, "replicasets", "patch"):
            shop.label()
            before = Untouched(shop)
            message = refused(shop, "WriteDenied")
            assert 'cannot patch resource "replicasets"' in message
            before.verify()
        shop.annotate(grace="20s")
        shop.wait_split(on_demand=1, spot=2)


@contextmanager
def right_taken_away(shop: Shop, resource: str, verb: str) -> Iterator[None]:
    """Take one verb out of splitter's ClusterRole, and put the role back."""
    path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/splitter"
    whole = shop.sandbox.api.get(path)["rules"]
    less = [
        {**rule, "verbs": [one for one in rule["verbs"] if resource not in rule["resources"] or one != verb]}
        for rule in whole
    ]

    def write(rules: object) -> None:
        patch = json.dumps({"rules": rules})
        shop.sandbox.kubectl("patch", "clusterrole", "splitter", "--type=merge", "-p", patch)

    def may() -> bool:
        who = "--as=system:serviceaccount:splitter-system:splitter"
        try:
            return "yes" in shop.kubectl("auth", "can-i", verb, resource, who)
        except SandboxError as refusal:
            return "no" not in str(refusal)

    write(less)
    try:
        wait_until(lambda: not may(), what="the right to be gone", deadline_s=DEADLINE_S)
        yield
    finally:
        write(whole)
        wait_until(may, what="the right to be there again", deadline_s=DEADLINE_S)
