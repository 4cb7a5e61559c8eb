"""The names of twins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.labels_annotations import name_problem, short_name, twin_name
from splitter.core.model import Mode
from splitter.core.reasons import Reason
from splitter.core.replica import Pool


class TestNames:
    def test_twins(self) -> None:
        """Twins are called after their source and their pool."""
        assert [twin_name("web", pool) for pool in Pool] == ["web-on-demand", "web-spot"]

    @pytest.mark.parametrize(("kind", "longest"), [("Deployment", 232), ("StatefulSet", 42)])
    def test_limit(self, kind: str, longest: int) -> None:
        """The longest name leaves room for what splitter and Kubernetes append, and one more is refused."""
        assert name_problem(kind, "w" * longest) is None
        problem = name_problem(kind, "w" * (longest + 1))
        assert problem is not None
        assert problem.reason is Reason.NAME_TOO_LONG
        assert (
            f"has {longest + 1} characters; a {kind} to be split may have at most {longest}"
            in problem.message
        )

    def test_limit_of_placement(self) -> None:
        """Its pods keep their names, so only what Kubernetes appends counts."""
        assert name_problem("StatefulSet", "w" * 52, Mode.PLACEMENT) is None
        problem = name_problem("StatefulSet", "w" * 53, Mode.PLACEMENT)
        assert problem is not None
        assert "has 53 characters; a StatefulSet to be split may have at most 52" in problem.message

    def test_short_name(self) -> None:
        """A name that fits stays as it is; two long ones with one beginning stay apart."""
        assert short_name("web") == "web"
        assert short_name("w" * 63) == "w" * 63
        assert short_name("w" * 64) != short_name("w" * 65)

    @given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True), st.integers(10, 63))
    def test_short_name_is_a_label(self, name: str, max_len: int) -> None:
        """Whatever the object's name, the result is a valid label value of the wanted length."""
        short = short_name(name, max_len)
        assert 1 <= len(short) <= max_len
        assert short[0].isalnum()
        assert short[-1].isalnum()
