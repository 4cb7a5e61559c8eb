"""A first look at template sets that people bring: once for each change, told where its author looks."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, cast

import pytest

from splitter.assembly import renderer_of
from splitter.core.model import Note
from splitter.core.names import Key
from splitter.core.template_sets import TemplateSet
from splitter.kube.records import TemplateSetRecord
from splitter.reconciler.template_validation import TemplateValidation
from splitter.render.bounded import BoundedRenderer
from splitter.settings import Settings

if TYPE_CHECKING:
    from splitter.reconciler.events import EventRecorder

DEADLINE_S = 60.0
GOOD = "apiVersion: apps/v1\nkind: Deployment\nspec: {template: {{ source.spec.template }}}\n"


class Ears:
    """Takes what is told about an object."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[tuple[Key, str, Note]] = asyncio.Queue()

    def tell_about(self, key: Key, uid: str, note: Note, now: object) -> None:
        """Take a note."""
        del now
        self.received.put_nowait((key, uid, note))


class Desk:
    """An inspection and who hears of it."""

    def __init__(self) -> None:
        self.ears = Ears()
        self.renderer = BoundedRenderer(renderer_of(Settings()))
        self.validation = TemplateValidation(self.renderer, cast("EventRecorder", self.ears))

    def close(self) -> None:
        """End the child process."""
        self.renderer.close()

    def bring(self, text: str, name: str = "own") -> None:
        """Have a set looked at."""
        template_set = TemplateSet(name, {"deployment/spot.yaml.j2": text}, ("shop",), f"home/{name}")
        self.validation.validate_template_set(TemplateSetRecord("home", f"uid-{name}", 1, template_set))

    async def hear(self) -> tuple[Key, str, Note]:
        """Run until something is told."""
        running = asyncio.create_task(self.validation.run())
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await self.ears.received.get()
        finally:
            running.cancel()


@pytest.fixture
def desk() -> Iterator[Desk]:
    """Yield one, with nothing on it."""
    with closing(Desk()) as result:
        yield result


async def test_a_fault_is_told_about_the_config_map(desk: Desk) -> None:
    """With its line, as an Event on what its author applied."""
    desk.bring("a: 1\nb: {{ x | }}\n")
    key, uid, note = await desk.hear()
    assert (key, uid, note.warning) == (Key("ConfigMap", "home", "own"), "uid-own", True)
    assert note.message.startswith("ConfigMap home/own, deployment.spot.yaml.j2, line 2: ")


async def test_a_good_one_is_said_in_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """With who may use it; sets come one after the other."""
    caplog.set_level("INFO")
    desk.bring(GOOD, "good")
    desk.bring("{{", "bad")
    key, _, _ = await desk.hear()
    assert key.name == "bad"
    assert "template set good is read; it may be used in shop" in caplog.text


async def test_of_several_changes_the_last_counts(desk: Desk) -> None:
    """Nobody is told of what has been mended meanwhile."""
    desk.bring("{{")
    desk.bring(GOOD)
    desk.bring("{{", "bad")
    key, _, _ = await desk.hear()
    assert key.name == "bad"
