"""What a person asks splitter itself: what it would do, how it stands, and to have everything back."""

import pytest

from e2e.support.refusals import ASKED, REPLICAS
from e2e.support.terminal import Terminal, reported
from lab.fixtures.shop import Shop

pytestmark = pytest.mark.e2e


def test_of_one_workload(shop: Shop, viewer: Terminal, admin: Terminal) -> None:
    """`plan` with the rights of a viewer, `status -w` on a terminal, and kubectl's own way to the verbs."""
    labels = {"team": shop.namespace}
    shop.deploy(replicas=REPLICAS, annotations={**ASKED, "splitter.io/dry-run": "true"}, labels=labels)
    shop.label()
    shop.says("DryRun")
    # A preview needs no right to write; what it could not ask, it says.
    assert "DryRun" in reported(viewer.splitter("plan", "deploy/web", "-n", shop.namespace))
    shop.kubectl("annotate", "deployment", "web", "splitter.io/dry-run-")
    shop.wait_split(on_demand=1, spot=2)
    shop.wait_steady()

    def looked(seen: str) -> bool:
        if "3/3" in seen:
            shop.scale(REPLICAS + 1)
        return "4/4" in seen

    # It shows changes in their place, in 80 columns, until Ctrl-C, which is how it ends.
    seen, code = admin.watched("status", "deploy/web", "-n", shop.namespace, "-w", until=looked)
    assert "4/4" in seen
    assert code == 0
    table = reported(admin.kubectl("splitter", "status", "-A", "-l", f"team={shop.namespace}"))
    assert f"{shop.namespace}/web" in table
    assert admin.kubectl("splitter", "status", "nothing", "-n", shop.namespace).returncode == 3
    asked = ("__complete", "splitter", "explain", "-n", shop.namespace)

    def completed() -> bool:  # names that cannot be had at once are none: a person waits for them
        *names, directive = reported(admin.kubectl(*asked, "deploy/w")).splitlines()
        assert directive == ":4"
        return names[0].startswith("deploy/web\t")

    shop.until(completed, "the name on TAB")
    assert reported(admin.kubectl(*asked, "x")).splitlines() == [":4"]
