"""An outage of all spot nodes on a real API server is seen on the page as it happens."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from e2e.support.terminal import Terminal
from lab.checkout import ROOT
from lab.fixtures.shop import DEADLINE_S, Shop
from lab.sandbox import Notice, Sandbox
from lab.sandbox.fleet import Fleet
from lab.sandbox.waiting import wait_until
from plugin.dashboard.browser import MISSING, chromium, complaints, programs

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(programs() is None, reason=MISSING)]

ADDRESS = re.compile(r"http://127\.0\.0\.1:[0-9]+/\S+")


@pytest.fixture
def page(sandbox: Sandbox, shop: Shop, viewer: Terminal, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a page that sees what somebody who may only look sees."""
    assert viewer is not None
    kubeconfig = sandbox.service_account_kubeconfig(shop.namespace, "viewer")
    log = tmp_path / "dashboard.log"
    command = [sys.executable, "-m", "splitter", "dashboard", "-n", shop.namespace]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)],
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def address() -> str | None:
        assert process.poll() is None, log.read_text("utf-8")
        result = ADDRESS.search(log.read_text("utf-8"))
        return result[0] if result is not None else None

    try:
        yield wait_until(address, what="the page", deadline_s=DEADLINE_S)
    finally:
        process.terminate()
        process.wait(timeout=DEADLINE_S)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[Chrome]:
    """Yield a browser."""
    with chromium(tmp_path / "chromium") as browser:
        yield browser


def test_an_outage_is_seen_as_it_happens(shop: Shop, fleet: Fleet, page: str, driver: Chrome) -> None:
    """Notice, cover, loss and return, on one page that is never loaded again."""
    spot = fleet.names("spot")
    shop.deploy(replicas=4, annotations={"splitter.io/on-demand-base": "1"})
    shop.label()
    shop.wait_split(on_demand=1, spot=3)
    driver.get(f"{page}workload/{shop.namespace}/deployment/web")
    driver.execute_script("window.here = true")

    def count(selector: str) -> int:
        return len(driver.find_elements(By.CSS_SELECTOR, selector))

    def until(selector: str, *numbers: int) -> None:
        """Wait until there are so many; without a number, some."""

        def is_seen(_: Chrome) -> bool:
            return count(selector) in numbers if numbers else count(selector) > 0

        WebDriverWait(driver, DEADLINE_S, poll_frequency=0.1).until(is_seen)

    until(".pool.spot .pod.ready", 3)
    until(".pool.on-demand .pod.ready", 1)
    # Frozen while they are looked for: two seconds after cover stands they are let go.
    shop.annotate(freeze="true")
    shop.says("Frozen")
    fleet.notice(spot, Notice.TAINT)
    until(".pool.spot .box.doomed .pod.going", 3)
    shop.annotate(freeze="false")
    until(".pool.on-demand .pod.ready", 4)
    fleet.kill(spot)
    until(".pool.spot .box", 0)
    until(".decisions .m.loss")  # of the Split's status, which follows what it tells of
    fleet.restore(spot)
    until(".pool.spot .pod.ready", 3)
    until(".pool.on-demand .pod", 1)
    assert driver.execute_script("return window.here") is True
    assert complaints(driver) == []
