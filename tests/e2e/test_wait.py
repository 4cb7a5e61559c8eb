"""`splitter wait` on a real control plane: for a moment after a change a Split tells of the one before."""

from pathlib import Path

import pytest

from e2e.support.refusals import ASKED, REPLICAS
from e2e.support.terminal import Terminal, reported
from lab.fixtures.shop import Shop
from lab.sandbox import Sandbox
from splitter.exits import Exit
from splitter.kube.connect import connect
from splitter.plugin.cli.target import Target
from splitter.plugin.cli.wait import wait_for
from splitter.plugin.core.waiting import Until

pytestmark = pytest.mark.e2e

PATCHES = 20
_ROLL_S = 60


@pytest.fixture
def web(shop: Shop) -> Shop:
    """Return a namespace whose `web` is split 1 + 2."""
    shop.deploy(replicas=REPLICAS, annotations=ASKED)
    shop.label()
    shop.wait_split(on_demand=1, spot=2)
    shop.wait_steady()
    return shop


async def test_never_ends_on_what_was_before(web: Shop, sandbox: Sandbox) -> None:
    """20 images, each waited for at once: when the wait is over, no pod has an older one."""
    behind = 0
    client = await connect(sandbox.kubeconfig, None, 10, 4)
    try:
        for number in range(PATCHES):
            image = f"web:{number}"
            web.set_image(image)
            generation = web.deployment()["metadata"]["generation"]
            status = web.status()
            behind += status["sourceGeneration"] < generation and status["state"] == "Steady"
            target = Target(web.namespace, "web", "Deployment")
            assert await wait_for(client, [target], Until.UPDATED, _ROLL_S) is Exit.DONE
            assert web.images() == {image: REPLICAS}
            assert web.status()["sourceGeneration"] >= generation
    finally:
        await client.close()
    print(f"a wait for Steady would have ended at once {behind} of {PATCHES} times")  # noqa: T201 (for -s)


def test_two_waits_of_kubectl(web: Shop) -> None:
    """As docs/reference/commands.md has them: for the generation, then for the condition."""
    for number in range(3):
        image = f"web:{number}"
        web.set_image(image)
        generation = web.deployment()["metadata"]["generation"]
        wait = ("wait", "split/web", f"--timeout={_ROLL_S}s")
        web.kubectl(*wait, f"--for=jsonpath={{.status.sourceGeneration}}={generation}")
        web.kubectl(*wait, "--for=condition=Updated")
        assert web.images() == {image: REPLICAS}


def test_with_the_rights_of_a_viewer(web: Shop, viewer: Terminal, sandbox: Sandbox, tmp_path: Path) -> None:
    """It reads two objects, and needs no right to watch; who may not read them is told so at once."""
    where = ("deploy/web", "-n", web.namespace)
    assert "web is rolled out: 3 of 3 replicas" in reported(viewer.splitter("wait", *where))
    stranger = Terminal(sandbox.service_account_kubeconfig(web.namespace, "default"), tmp_path)
    answer = stranger.splitter("wait", *where)
    assert answer.returncode == 1
    assert "is forbidden" in answer.stderr
    assert "waiting for" not in answer.stdout


def test_by_kubectl(web: Shop, admin: Terminal) -> None:
    """`kubectl splitter restart --wait` ends when every pod is another."""
    before = web.pod_uids()
    text = reported(admin.kubectl("splitter", "restart", "deploy/web", "-n", web.namespace, "--wait"))
    assert text.splitlines()[-1].startswith(f"deployment {web.namespace}/web is rolled out: 3 of 3")
    assert not before & web.pod_uids()
