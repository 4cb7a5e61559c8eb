"""The page in a real Chromium: it lives, it is read by everybody, and it asks nobody but itself."""

import asyncio
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from plugin.dashboard.browser import DESK, MISSING, PHONE, chromium, complaints, looks_like, programs
from plugin.dashboard.paper_cluster import Shown, node, shop, shown, split

pytestmark = [pytest.mark.slow, pytest.mark.skipif(programs() is None, reason=MISSING)]

WAIT_S = 15
# W3C's least contrast of text with what is behind it (WCAG 2.2, 1.4.3), and of signs (1.4.11).
TEXT, SIGN = 4.5, 3.0
VIEWS = {"fleet": "", "workload": "workload/shop/deployment/cart", "simulator": "simulator"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    """Yield a browser for all tests of this file."""
    with chromium(Path(tmp_path_factory.mktemp("chromium"))) as browser:
        yield browser


async def off(look: Callable[..., Any], *given: object) -> Any:  # noqa: ANN401 (whatever the browser says)
    """Have the browser do something while the page goes on answering."""
    return await asyncio.to_thread(partial(look, *given))


async def opened(driver: Chrome, it: Shown, path: str = "") -> None:
    """Open a view, and wait until it is live; what was said of pages before it is forgotten."""
    await off(driver.get, "about:blank")
    complaints(driver)
    await off(driver.get, it.address + path)
    await shows(driver, lambda: "yes" in (script(driver, "document.documentElement.dataset.live") or ""))


async def shows(driver: Chrome, look: Callable[[], object]) -> None:
    """Wait for something to be seen."""
    await off(WebDriverWait(driver, WAIT_S, poll_frequency=0.05).until, lambda _: look())


def script(driver: Chrome, expression: str) -> Any:  # noqa: ANN401 (a value of JavaScript's)
    """Return what an expression is in the page."""
    return driver.execute_script(f"return {expression}")


def _is_shown(driver: Chrome, words: str) -> bool:
    return words in driver.find_element(By.TAG_NAME, "main").text


class TestLive:
    """What changes is seen as it happens."""

    async def test_a_change_is_seen_without_a_reload(self, driver: Chrome) -> None:
        """A row changes in its place; what has the focus keeps it, and what is filtered stays so."""
        looks_like(driver, DESK)
        async with shown(shop()) as it:
            await opened(driver, it)
            script(driver, "(window.here = true)")
            await off(driver.find_element(By.ID, "filter").send_keys, "mail")
            await shows(driver, lambda: "1 of 9 shown" in driver.find_element(By.ID, "shown").text)
            link = driver.find_element(By.LINK_TEXT, "shop/mail")
            driver.execute_script("arguments[0].focus()", link)
            it.cluster.put("splits", split("mail", state="Held", reason="QuotaExceeded", on_demand=1, spot=2))
            await shows(driver, lambda: "QuotaExceeded" in driver.find_element(By.ID, "rows").text)
            assert script(driver, "document.activeElement.textContent") == "shop/mail"
            assert script(driver, "window.here") is True
            it.cluster.put("splits", split("other", namespace="mailing"))
            await shows(driver, lambda: "2 of 10 shown" in driver.find_element(By.ID, "shown").text)
            it.cluster.delete("splits", "shop", "mail")
            await shows(driver, lambda: "1 of 9 shown" in driver.find_element(By.ID, "shown").text)
            assert complaints(driver) == []

    async def test_a_notice_is_seen_on_the_node(self, driver: Chrome) -> None:
        """The box changes, and each replica in it says that it goes."""
        async with shown(shop()) as it:
            await opened(driver, it, VIEWS["workload"])
            before = len(driver.find_elements(By.CSS_SELECTOR, ".pools .pod.going"))
            it.cluster.put("nodes", node("spot-6", "spot", "a", going=True))
            await shows(
                driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, ".pools .pod.going")) > before
            )
            assert complaints(driver) == []

    async def test_says_when_it_is_no_longer_live(self, driver: Chrome) -> None:
        """A page whose command has ended says so, and does not look well."""
        async with shown(shop()) as it:
            await opened(driver, it)
        await shows(driver, lambda: "not live" in driver.find_element(By.ID, "live").text)

    async def test_the_simulator_draws_at_once(self, driver: Chrome) -> None:
        """A key is pressed, and the picture is another; the address says what was asked for."""
        async with shown(shop()) as it:
            await opened(driver, it, "simulator?workload=shop/deployment/cart")
            await shows(driver, lambda: len(driver.find_elements(By.CSS_SELECTOR, "#replay svg")) == 1)
            before = driver.find_element(By.ID, "replay").text
            field = driver.find_element(By.ID, "f-on-demand-base")
            await off(field.send_keys, Keys.BACKSPACE, "7")
            await shows(driver, lambda: driver.find_element(By.ID, "replay").text != before)
            assert "on-demand-base=7" in driver.current_url
            assert complaints(driver) == []

    async def test_the_plan_is_shown_when_it_is_asked_for(self, driver: Chrome) -> None:
        """A button, and the words of `splitter plan`."""
        async with shown(shop()) as it:
            await opened(driver, it, VIEWS["workload"])
            await off(driver.find_element(By.CSS_SELECTOR, "[data-load]").click)
            await shows(driver, lambda: "would write nothing" in driver.find_element(By.ID, "plan").text)


class TestSecurity:
    """Whatever others write, no script of theirs runs, and nobody else is asked for anything."""

    async def test_no_script_of_others_runs(self, driver: Chrome) -> None:
        """A sentence with a script in it is a sentence, on the page and in what comes later."""
        cluster = shop()
        bad = "<img src=x onerror='document.title=1'><script>document.title=1</script>"
        cluster.put("splits", split("cart", message=bad, reason=bad, state=bad))
        async with shown(cluster) as it:
            for path in ("", VIEWS["workload"]):
                await opened(driver, it, path)
                cluster.put("splits", split("cart", message=f"{bad} again", reason=bad, state=f"{bad}{path}"))
                await shows(driver, partial(_is_shown, driver, f"</script>{path}"))
                assert "splitter" in driver.title
                assert driver.find_elements(By.CSS_SELECTOR, "main img, main script") == []
            assert complaints(driver) == []

    async def test_asks_nobody_else(self, driver: Chrome) -> None:
        """All that a view has loaded came from the page itself."""
        async with shown(shop()) as it:
            for path in VIEWS.values():
                await opened(driver, it, path)
                loaded = script(driver, "performance.getEntriesByType('resource').map((one) => one.name)")
                assert loaded
                assert all(name.startswith(it.address) for name in loaded)

    async def test_the_policy_holds_in_a_browser(self, driver: Chrome) -> None:
        """A script that somebody managed to put into the page does not run."""
        async with shown(shop()) as it:
            await opened(driver, it)
            added = "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
            driver.execute_script(f"{added} document.body.append(s)")
            assert script(driver, "window.ran === undefined")
            assert "Content Security Policy" in str(complaints(driver))


class TestEverybody:
    """Read by a screen reader, used by keys, on a phone, in light and dark."""

    @pytest.mark.parametrize("path", VIEWS.values(), ids=VIEWS)
    async def test_has_landmarks_and_names(self, driver: Chrome, path: str) -> None:
        """Landmarks once each, one h1, no level of headings left out, everything that is used has a name."""
        async with shown(shop()) as it:
            await opened(driver, it, path)
            tree = (await off(driver.execute_cdp_cmd, "Accessibility.getFullAXTree", {}))["nodes"]
            named = [
                (one["role"]["value"], one.get("name", {}).get("value", ""))
                for one in tree
                if not one.get("ignored")
            ]
            roles = [role for role, _ in named]
            for landmark in ("banner", "navigation", "main", "contentinfo"):
                assert roles.count(landmark) == 1, landmark
            unnamed = [
                role
                for role, name in named
                if role in {"link", "button", "textbox", "searchbox", "table", "region", "img", "combobox"}
                and not name.strip()
            ]
            # A table is named by the region that it scrolls in, or by its heading.
            assert [role for role in unnamed if role != "table"] == []
            levels = [int(tag[1]) for tag in script(driver, _HEADINGS)]
            assert levels.count(1) == 1
            assert all(after - before <= 1 for before, after in pairwise(levels))
            assert script(driver, "document.documentElement.lang") == "en"
            ids = script(driver, "[...document.querySelectorAll('[id]')].map((one) => one.id)")
            assert len(ids) == len(set(ids))
            assert script(driver, _BROKEN_REFERENCES) == []

    async def test_tables_have_headers(self, driver: Chrome) -> None:
        """Each cell has a heading of its column and of its row."""
        async with shown(shop()) as it:
            for path in VIEWS.values():
                await opened(driver, it, path)
                assert script(driver, _TABLES_WITHOUT_HEADERS) == []

    async def test_state_is_no_colour_alone(self, driver: Chrome) -> None:
        """Each replica and each state says in words what it is."""
        async with shown(shop()) as it:
            await opened(driver, it, VIEWS["workload"])
            texts = script(
                driver, "[...document.querySelectorAll('.pools .pod')].map((one) => one.textContent)"
            )
            assert len(texts) == 13
            assert all(re.search("ready|going|gone|ending|no node", one) for one in texts)
            signs = script(
                driver, "[...document.querySelectorAll('.pools .pod.going')].map((o) => o.innerText[0])"
            )
            assert set(signs) == {"!"}

    @pytest.mark.parametrize("path", VIEWS.values(), ids=VIEWS)
    async def test_is_used_by_keys(self, driver: Chrome, path: str) -> None:
        """Tab reaches the content first, and whatever has the focus is seen to have it."""
        looks_like(driver, DESK)
        async with shown(shop()) as it:
            await opened(driver, it, path)
            body = driver.find_element(By.TAG_NAME, "body")
            await off(body.send_keys, Keys.TAB)
            assert script(driver, "document.activeElement.className") == "skip"
            reached = []
            for _ in range(12):
                await off(driver.switch_to.active_element.send_keys, Keys.TAB)
                if script(driver, "document.activeElement !== document.body"):  # behind the last one
                    reached.append(script(driver, "getComputedStyle(document.activeElement).outlineStyle"))
            assert set(reached) == {"solid"}
            await off(driver.get, it.address + path)
            await off(driver.find_element(By.TAG_NAME, "body").send_keys, Keys.TAB)
            await off(driver.switch_to.active_element.send_keys, Keys.ENTER)
            assert script(driver, "document.activeElement.id") == "main"

    @pytest.mark.parametrize("path", VIEWS.values(), ids=VIEWS)
    async def test_fits_a_phone(self, driver: Chrome, path: str) -> None:
        """Nothing makes the page wider than it; what is wide scrolls in its own box."""
        looks_like(driver, PHONE)
        try:
            async with shown(shop()) as it:
                await opened(driver, it, path)
                assert script(driver, "document.documentElement.scrollWidth") <= PHONE[0]
        finally:
            looks_like(driver, DESK)

    @pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
    async def test_has_contrast(self, driver: Chrome, dark: bool) -> None:
        """All text is read on what is behind it, in light and dark colours."""
        looks_like(driver, DESK, dark=dark)
        try:
            async with shown(shop()) as it:
                for path in VIEWS.values():
                    await opened(driver, it, path)
                    faint = [one for one in script(driver, _CONTRASTS) if one[0] < TEXT]
                    assert faint == []
        finally:
            looks_like(driver, DESK)

    async def test_pools_are_told_apart_from_the_paper(self, driver: Chrome) -> None:
        """Signs without text have the contrast that signs need."""
        for dark in (False, True):
            looks_like(driver, DESK, dark=dark)
            async with shown(shop()) as it:
                await opened(driver, it)
                for name in ("spot", "on-demand", "accent", "warn", "bad", "good"):
                    result = script(driver, f"({_RATIO})('--{name}', '--paper')")
                    assert result >= SIGN, (name, dark, result)
        looks_like(driver, DESK)

    async def test_lines_are_no_areas(self, driver: Chrome) -> None:
        """What is not closed is not filled: a line with a bend would cover what lies behind it."""
        async with shown(shop()) as it:
            await opened(driver, it, VIEWS["workload"])
            assert script(driver, f"{_OPEN_PATHS}.length") > 0
            filled = script(driver, f"{_OPEN_PATHS}.filter((one) => getComputedStyle(one).fill != 'none')")
            assert filled == []


_OPEN_PATHS = (
    "[...document.querySelectorAll('svg.time path')].filter((one) => !/Z$/.test(one.getAttribute('d')))"
)
_HEADINGS = "[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => one.tagName)"
_BROKEN_REFERENCES = """[...document.querySelectorAll('[aria-labelledby],label[for]')]
  .map((one) => one.getAttribute('aria-labelledby') || one.getAttribute('for'))
  .filter((id) => !document.getElementById(id))"""
_TABLES_WITHOUT_HEADERS = """[...document.querySelectorAll('table')].filter((table) =>
  !table.querySelector('thead th[scope=col]')
  || [...table.querySelectorAll('tbody tr')].some((row) => !row.querySelector('th[scope=row]')))
  .map((table) => table.className)"""
_LUMINANCE = """(text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map((one) => one / 255)
    .map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}"""
_RATIO = f"""(one, other) => {{
  const luminance = {_LUMINANCE};
  const value = (name) => {{
    const probe = document.createElement('i');
    probe.style.color = getComputedStyle(document.documentElement).getPropertyValue(name);
    document.body.append(probe);
    const found = luminance(getComputedStyle(probe).color);
    probe.remove();
    return found;
  }};
  const [low, high] = [value(one), value(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}}"""
_CONTRASTS = f"""(() => {{
  const luminance = {_LUMINANCE};
  const behind = (element) => {{
    for (let one = element; one; one = one.parentElement) {{
      const colour = getComputedStyle(one).backgroundColor;
      if (!/^rgba\\(.*, 0\\)$/.test(colour)) return luminance(colour);
    }}
    return 1;
  }};
  const found = [];
  for (const element of document.querySelectorAll('body *')) {{
    const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    const box = element.getBoundingClientRect();
    if (!own || box.width < 2 || element.closest('svg')) continue;
    const [low, high] = [luminance(getComputedStyle(element).color), behind(element)].sort((a, b) => a - b);
    found.push([(high + 0.05) / (low + 0.05), element.className, element.textContent.slice(0, 40)]);
  }}
  return found;
}})()"""
