"""YAML as kubectl reads and writes it: what a plain word means, and which texts need quotes.

`manifests` reads files with `Loader`; what people pipe into `kubectl apply` goes through `written`. kubectl
reads YAML as Go programs do (sigs.k8s.io/yaml): `12:30`, `=` and dates are texts, `y` and `off` are booleans,
`0o17` and `81111e1` are numbers. PyYAML differs in some of each.
"""

import re
from collections.abc import Hashable, Mapping
from math import isfinite
from typing import Final

import yaml

_WORDS: Final[Mapping[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
# Underscores are taken out of what begins with a sign or a digit.
_INTEGER: Final = re.compile(r"([-+]?)(?:0[bB]([01]+)|0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES: Final = (2, 16, 8, 10)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_FRACTION: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_ENDLESS: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LONGEST: Final = 100  # characters: 64 bits, as binary digits
_LEAST, _MOST = -(2**63), 2**64 - 1
_EXPONENT = 1e21  # below that Go writes a float without a fraction as an integer
_LINE_BREAKS: Final = frozenset("\x85\u2028\u2029")  # to PyYAML, and to no other


def meaning(word: str) -> str | float | bool | None:
    """Return what a plain word means to kubectl.

    Raises ValueError for `.inf` and `.nan`, which JSON does not know.

    >>> [meaning(word) for word in ("12:30", "y", "0o17", "81111e1", "1.5", "=")]
    ['12:30', True, 15, 811110, 1.5, '=']
    """
    if word in _WORDS:
        return _WORDS[word]
    if _ENDLESS.fullmatch(word):
        raise ValueError(f"{word} is a number that JSON does not know; put it in quotes if it is a text")
    if not word.isascii() or word[0] not in "+-.0123456789":
        return word
    if word[0] == ".":
        return _float(word) if _FRACTION.fullmatch(word) else word
    digits = word.replace("_", "")
    if (integer := _integer(digits)) is not None:
        return integer
    return _float(digits, word) if _FLOAT.fullmatch(digits) else word


def _integer(digits: str) -> int | None:
    matched = _INTEGER.fullmatch(digits) if len(digits) <= _LONGEST else None
    if matched is None:
        return None
    sign, *forms = matched.groups()
    value = next(int(form, base) for form, base in zip(forms, _BASES, strict=True) if form)
    value = -value if sign == "-" else value
    return value if _LEAST <= value <= (2**63 - 1 if sign else _MOST) else None


def _float(digits: str, word: str = "") -> float | str:
    value = float(digits.replace("_", ""))
    if not isfinite(value):
        return word or digits
    return int(value) if value.is_integer() and abs(value) < _EXPONENT else value


class Loader(yaml.CSafeLoader):
    """YAML as kubectl reads it; the keys of mappings are texts, as in JSON."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """Return the mapping; a key that is a number or a boolean becomes its text."""
        made = super().construct_mapping(node, deep)
        if None in made:
            problem = "a key is null; only a text can be one"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return {str(key).lower() if isinstance(key, bool) else str(key): value for key, value in made.items()}

    def construct_plain(self, node: yaml.ScalarNode) -> object:
        """Return what a plain word means."""
        try:
            return meaning(str(node.value))
        except ValueError as fault:
            raise yaml.constructor.ConstructorError(None, None, str(fault), node.start_mark) from fault


_MERGE: Final = "tag:yaml.org,2002:merge"
_PLAIN: Final = "tag:splitter.io,2026:plain"
Loader.yaml_implicit_resolvers = {None: [(_MERGE, re.compile("<<$")), (_PLAIN, re.compile(""))]}
Loader.add_constructor(_PLAIN, Loader.construct_plain)
Loader.add_constructor(_MERGE, lambda _loader, node: node.value)  # as a value it merges nothing


class Dumper(yaml.SafeDumper):
    """Puts into quotes what kubectl would not read back as the text that it is."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return a text; PyYAML itself quotes what it would read as something else."""
        try:
            is_text = isinstance(meaning(text), str)
        except ValueError:
            is_text = False
        style = '"' if _LINE_BREAKS & set(text) else None if is_text else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


Dumper.add_representer(str, Dumper.represent_text)


def written(value: object, *, sort_keys: bool = False) -> str:
    """Return plain data as YAML for a terminal; no line is folded, since a folded one is hard to search."""
    texts = (
        str(yaml.dump(value, Dumper=Dumper, sort_keys=sort_keys, allow_unicode=letters, width=10_000))
        for letters in (True, False)
    )
    text = next(texts)
    return text if text.replace("\n", "").isprintable() else next(texts)  # YAML prints marks of direction
