"""What is wrong with a template or its set: where, what, what to do, and what holds until then."""

import pytest

from splitter.core.reasons import Reason
from splitter.core.template_sets import TemplateSet
from splitter.render.errors import LimitError, Reached, TemplateError, no_such_set, not_allowed


class TestTemplateError:
    def test_is_a_sentence_with_its_line(self) -> None:
        """Without one where none is known."""
        error = TemplateError("own", "spot.yaml.j2", 3, "it is wrong")
        assert error.message == (
            "spot.yaml.j2, line 3: it is wrong. Mend it and try it with `splitter render`. Until then the"
            ' workloads of the template set "own" keep their last good twins.'
        )
        assert TemplateError("own", "a", None, "b").message.startswith("a: b. ")
        assert (error.reason, error.file, error.line, error.lasting) == (
            Reason.TEMPLATE_INVALID,
            "spot.yaml.j2",
            3,
            True,
        )

    def test_of_a_limit_says_what_was_reached(self) -> None:
        """And whether another time may fare better."""
        reached = Reached("own", "a", 2, "it took too long", "Wait.", lasting=False)
        error = LimitError(reached)
        assert error.message.startswith("a, line 2: it took too long. Wait. Until then")
        assert (error.reached, error.lasting) == (reached, False)


class TestSets:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [("defualt", 'did you mean "default"?'), ("xyzzy", "known are: default, lean.")],
    )
    def test_one_that_is_not_there(self, name: str, hint: str) -> None:
        """Those that there are, in order."""
        error = no_such_set(name, ["lean", "default"])
        assert error.message.startswith(f'there is no template set "{name}"; {hint} Name another one in')

    @pytest.mark.parametrize(
        ("namespaces", "may"),
        [
            (("bank", "home"), "may be used in the namespaces bank, home"),
            ((), "names no namespace that may use it"),
        ],
    )
    def test_one_that_is_not_for_a_namespace(self, namespaces: tuple[str, ...], may: str) -> None:
        """Which may use it, and where that is written."""
        error = not_allowed(TemplateSet("own", {}, namespaces=namespaces, config_map="home/own"), "shop")
        assert error.reason is Reason.TEMPLATE_INVALID
        assert f'the template set "own" {may}, and this is shop. Add it to' in error.message
        assert "of ConfigMap home/own" in error.message
