"""Names that the API server would accept, and no others: nobody's name is a path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.core.names import DEPLOYMENT, NAME_MAX, STATEFUL_SET, Key, is_name, ordinal_of


class TestNames:
    @pytest.mark.parametrize("text", ["a", "web-2", "web.shop", "0", "a" * NAME_MAX])
    def test_are_subdomains(self, text: str) -> None:
        """Of RFC 1123."""
        assert is_name(text)

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "-a",
            "a-",
            "a..b",
            ".a",
            "A",
            "a_b",
            "a/b",
            "../a",
            "a b",
            "a\n",
            "a%2f",
            "ä",
            "a" * (NAME_MAX + 1),
            None,
            5,
        ],
    )
    def test_are_nothing_else(self, text: object) -> None:
        """Least of all what leads elsewhere in an address."""
        assert not is_name(text)

    @given(st.text(max_size=40))
    def test_lead_nowhere(self, text: str) -> None:
        """No name has a character that means something in a path or a query."""
        assert not is_name(text) or set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")


class TestOrdinals:
    @pytest.mark.parametrize(
        ("text", "ordinal"),
        [
            *(("0", 0), ("12", 12), ("4294967295", 4_294_967_295), ("012", None), ("-1", None), ("+1", None)),
            *(("", None), ("1 ", None), ("1\n", None), ("\u0661", None), ("9" * 5_000, None)),
        ],
    )
    def test_are_written_one_way(self, text: str, ordinal: int | None) -> None:
        """As a StatefulSet writes them."""
        assert ordinal_of(text) == ordinal


class TestKey:
    def test_is_written_as_kubectl_users_do(self) -> None:
        """With its kind where two could have the name."""
        assert str(Key(DEPLOYMENT, "shop", "web")) == "shop/web"
        assert str(Key(STATEFUL_SET, "shop", "db")) == "shop/statefulset/db"

    @pytest.mark.parametrize(
        ("namespace", "name"), [("shop", "../web"), ("a/b", "web"), ("", "web"), ("shop", "")]
    )
    def test_of_what_is_no_name_is_not_made(self, namespace: str, name: str) -> None:
        """Whoever writes an object chooses the words."""
        with pytest.raises(ValueError, match="none that an object can have"):
            Key(DEPLOYMENT, namespace, name)
