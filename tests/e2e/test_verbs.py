"""What a person asks splitter itself: what it would do, how it stands, and to have everything back."""

import pytest

from e2e.support.refusals import ASKED, REPLICAS
from e2e.support.terminal import Terminal, reported
from lab.fixtures.shop import Shop

pytestmark = pytest.mark.e2e


class TestPlan:
    def test_with_the_rights_of_a_viewer(self, shop: Shop, viewer: Terminal) -> None:
        """A preview needs no right to write; what it could not ask, it says."""
        shop.deploy(replicas=REPLICAS, annotations={**ASKED, "splitter.io/dry-run": "true"})
        shop.label()
        shop.says("DryRun")
        text = reported(viewer.splitter("plan", "deploy/web", "-n", shop.namespace))
        assert "DryRun" in text
        shop.kubectl("annotate", "deployment", "web", "splitter.io/dry-run-")
        shop.wait_split(on_demand=1, spot=2)


class TestStatus:
    def test_live_on_a_terminal(self, shop: Shop, admin: Terminal) -> None:
        """-w shows changes in their place, in 80 columns, until Ctrl-C, which is how it ends."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED)
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        shop.wait_steady()

        def looked(seen: str) -> bool:
            if "3/3" in seen:
                shop.scale(REPLICAS + 1)
            return "4/4" in seen

        seen, code = admin.watched("status", "deploy/web", "-n", shop.namespace, "-w", until=looked)
        assert "4/4" in seen
        assert code == 0


class TestKubectl:
    """`kubectl splitter`: the same verbs, found by kubectl itself."""

    def test_runs_the_verbs(self, shop: Shop, admin: Terminal) -> None:
        """With kubectl's habits, and the names of workloads on TAB."""
        shop.deploy(replicas=REPLICAS, annotations=ASKED, labels={"team": shop.namespace})
        shop.label()
        shop.wait_split(on_demand=1, spot=2)
        table = reported(admin.kubectl("splitter", "status", "-A", "-l", f"team={shop.namespace}"))
        assert f"{shop.namespace}/web" in table
        assert admin.kubectl("splitter", "status", "nothing", "-n", shop.namespace).returncode == 3
        asked = ("__complete", "splitter", "explain", "-n", shop.namespace)

        def completed() -> bool:  # names that cannot be had at once are none: somebody waits for them
            *names, directive = reported(admin.kubectl(*asked, "deploy/w")).splitlines()
            assert directive == ":4"
            return names[0].startswith("deploy/web\t")

        shop.until(completed, "the name on TAB")
        assert reported(admin.kubectl(*asked, "x")).splitlines() == [":4"]
