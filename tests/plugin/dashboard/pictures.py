"""Writes the pictures of the page that its documentation shows: `make pictures`.

An application on paper, at a time that is always the same: a picture changes when the page does.
"""

import asyncio
import base64
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

from plugin.dashboard.browser import DESK, MISSING, PHONE, chromium, looks_like, programs
from plugin.dashboard.paper_cluster import PaperCluster, shop, shown
from splitter.core.names import DEPLOYMENT, Key

NOW = datetime(2026, 1, 5, 16, 20, tzinfo=UTC)
_WAIT_S = 15
_MOST = 2000
_LIGHT, _DARK, _PHONE = ("", DESK, False), ("-dark", DESK, True), ("-phone", PHONE, False)
_FLEET, _WORKLOAD = "", "workload/shop/deployment/cart"
_SIMULATOR = "simulator?workload=shop/deployment/cart&on-demand-base=5"
_PICTURES = [
    (name, path, look)
    for name, path in (("fleet", _FLEET), ("workload", _WORKLOAD), ("simulator", _SIMULATOR))
    for look in (_LIGHT, _DARK, _PHONE)
]
_LAST = Key(DEPLOYMENT, "shop", "shipping")
_READY = "return !!document.documentElement.dataset.shown || !!document.querySelector('#replay svg')"


class _Clock:
    """A clock that stands still until it is set."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


async def draw(folder: Path) -> None:
    """Write all pictures into a folder."""
    cluster, clock = shop(NOW, calm=True), _Clock(NOW - timedelta(minutes=50))
    with tempfile.TemporaryDirectory() as home, chromium(Path(home)) as driver:
        async with shown(cluster, now=clock) as it:
            clock.at = NOW - timedelta(minutes=1)
            with it.model.listened() as changed:
                _disturb(cluster)
                while it.model.statuses[_LAST].reason != "ImagePullFailed":
                    changed.clear()
                    await changed.wait()
            clock.at = NOW
            for name, path, look in _PICTURES:
                file = folder / f"dashboard-{name}{look[0]}.png"
                await asyncio.to_thread(_draw, driver, it.address + path, look, file)
                sys.stdout.write(f"{file}\n")


def _disturb(cluster: PaperCluster) -> None:
    """Announce two nodes to go."""
    later = shop(NOW)
    for plural in ("nodes", "pods", "splits"):
        cluster.put(plural, *later.of(plural))


def _draw(driver: Chrome, address: str, look: tuple[str, tuple[int, int], bool], file: Path) -> None:
    _, size, dark = look
    looks_like(driver, size, dark=dark)
    driver.get(address)
    WebDriverWait(driver, _WAIT_S).until(lambda _: driver.execute_script(_READY))
    height = driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": size[0], "height": min(height, _MOST), "scale": 1}
    taken = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
    )
    file.write_bytes(base64.b64decode(taken["data"]))


if __name__ == "__main__":
    if programs() is None:
        sys.exit(f"make pictures: {MISSING}")
    asyncio.run(draw(Path(sys.argv[1])))
