"""The options of `splitter uninstall`; `splitter.giving_back` does the rest."""

import pytest
from typer.testing import CliRunner

from splitter.exits import Exit
from splitter.plugin.cli import app, uninstall


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-A"], (None, None, 600.0)),
        (["-n", "shop", "-l", "a=b", "--timeout", "9"], ("shop", "a=b", 9.0)),
    ],
)
def test_gives_back_what_is_asked_for(
    words: list[str], expected: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A namespace or all, perhaps by labels; the exit code says whether all is given back."""
    asked: list[tuple[object, ...]] = []

    def give_back(_: object, *options: object) -> Exit:
        asked.append(options)
        return Exit.NOT_ALL_BACK

    monkeypatch.setattr(uninstall, "give_back", give_back)
    assert CliRunner().invoke(app, ["uninstall", *words]).exit_code == Exit.NOT_ALL_BACK
    assert asked == [expected]
