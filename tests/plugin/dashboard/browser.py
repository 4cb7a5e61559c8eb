"""A real headless Chromium, where there is one: what the page looks like and does in it."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

MISSING = "no chromium and chromedriver on PATH (Debian: apt-get install chromium chromium-driver)"
PHONE = (390, 844)
DESK = (1280, 900)


def programs() -> tuple[str, str] | None:
    """Return where the browser and its driver are; None where one is missing."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser is not None and driver is not None else None


@contextmanager
def chromium(home: Path) -> Iterator[Chrome]:
    """Yield a browser without a network of its own: it asks loopback, and nobody else."""
    paths = programs()
    assert paths is not None, MISSING
    options = ChromeOptions()
    options.binary_location = paths[0]
    for argument in (
        "--headless=new",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--force-device-scale-factor=1",
        "--hide-scrollbars",
        f"--user-data-dir={home}",
    ):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # chromium refuses to have one as root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options=options, service=Service(paths[1]))
    try:
        yield driver
    finally:
        driver.quit()


def looks_like(driver: Chrome, size: tuple[int, int], *, dark: bool = False) -> None:
    """Give the page a size, and light or dark colours."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def complaints(driver: Chrome) -> list[dict[str, Any]]:
    """Return what the browser has complained about: faults of scripts, and what the policy has refused."""
    return [one for one in driver.get_log("browser") if one["level"] in {"SEVERE", "WARNING"}]
