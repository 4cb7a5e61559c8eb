"""What a template set is, and how one is read from a ConfigMap.

`render` reads sets from folders, `kube.parse` from the ConfigMaps of splitter's own namespace, and
`splitter render` from a manifest of one; the renderer makes twins of any. What is wrong with a whole
set is a sentence in it and no exception: its workloads are told, and no others. Whether its templates
render is the renderer's to find out.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from splitter.core.labels_annotations import ANNOTATION_NAMESPACES, LABEL_TEMPLATE_SET, TEMPLATE_SET_ENABLED
from splitter.core.labels_annotations.words import TEMPLATE_SET, nearest, quoted
from splitter.core.replica import Pool

SUFFIX: Final = ".yaml.j2"
# Compiling takes up to 20 ms of CPU and 1 MiB a KiB (docs/adr/0029); the default templates have under 3 KiB.
MAX_TEMPLATE_BYTES: Final = 32 * 1024
# The kinds that are split into twins.
_KINDS: Final = ("deployment", "statefulset")
_PATTERN: Final = re.compile(r"[a-z0-9*]([a-z0-9*-]{0,62})")


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """Templates under one name; `files` maps `deployment/spot.yaml.j2` to its text."""

    name: str
    files: Mapping[str, str]
    namespaces: tuple[str, ...] = ("*",)  # patterns of the namespaces that may use it
    config_map: str = ""  # namespace/name of where it is written; empty: a folder
    faults: tuple[str, ...] = field(default=())  # what is wrong with the whole, and how to mend it

    def where(self, path: str) -> str:
        """Return where a person finds a file of this set."""
        if not self.config_map:
            return f"{self.name}/{path}"
        return f"ConfigMap {self.config_map}, {_key(path)}"

    def serves(self, namespace: str) -> bool:
        """Whether workloads of a namespace may use this set.

        >>> TemplateSet("small", {}, ("shop", "team-*")).serves("team-a")
        True
        """
        return any(fnmatchcase(namespace, pattern) for pattern in self.namespaces)


def path_of(kind: str, pool: Pool) -> str:
    """Return the file of a set that makes a twin.

    >>> path_of("Deployment", Pool.SPOT)
    'deployment/spot.yaml.j2'
    """
    return f"{kind.lower()}/{pool.value}{SUFFIX}"


def _key(path: str) -> str:
    """Return the key of a file in a ConfigMap, where a slash is not allowed."""
    return path.replace("/", ".")


_FILES: Final = {_key(path_of(kind, pool)): path_of(kind, pool) for kind in _KINDS for pool in Pool}


def from_config_map(
    namespace: str,
    name: str,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    texts: Mapping[str, str],
    binary_keys: Iterable[str] = (),
) -> TemplateSet:
    """Return the set that a ConfigMap holds, called as it is; with faults where it is not one.

    A manifest may leave the namespace open.
    """
    patterns = tuple(part.strip() for part in annotations.get(ANNOTATION_NAMESPACES, "").split(","))
    patterns = tuple(pattern for pattern in patterns if pattern)
    faults = (
        *_of_label(labels),
        *_of_name(name),
        *_of_patterns(patterns),
        *_of_keys(texts, tuple(binary_keys)),
        *_of_sizes(texts),
    )
    files = {_FILES[key]: text for key, text in texts.items() if key in _FILES}
    return TemplateSet(name, files, patterns, f"{namespace}/{name}".lstrip("/"), faults)


def _of_label(labels: Mapping[str, str]) -> Iterable[str]:
    value = labels.get(LABEL_TEMPLATE_SET)
    if value != TEMPLATE_SET_ENABLED:
        yield f'the label {LABEL_TEMPLATE_SET} is {quoted(value or "")}; write "{TEMPLATE_SET_ENABLED}"'


def _of_name(name: str) -> Iterable[str]:
    if TEMPLATE_SET.read(name) is None:
        yield f"its name is that of the set, and must be {TEMPLATE_SET.must_be}; give it such a name"


def _of_patterns(patterns: Iterable[str]) -> Iterable[str]:
    for pattern in patterns:
        if _PATTERN.fullmatch(pattern) is None:
            yield (
                f"the annotation {ANNOTATION_NAMESPACES} holds {quoted(pattern)}, which names no"
                ' namespace; write names with commas between them, * for anything, such as "shop, team-*"'
            )


def _of_keys(texts: Mapping[str, str], binary_keys: tuple[str, ...]) -> Iterable[str]:
    known = tuple(_FILES)
    for key in binary_keys:
        yield f"the key {quoted(key)} is binary data; a template is text in UTF-8, under `data`"
    for key in sorted(texts):
        if key not in _FILES:
            near = nearest(key, known)
            advice = f'did you mean "{near}"?' if near else f"remove it; there are {' and '.join(known)}"
            yield f"the key {quoted(key)} is no template's; {advice}"
    there = {*texts, *binary_keys}
    kinds = [kind for kind in _KINDS if there & {_key(path_of(kind, pool)) for pool in Pool}] or _KINDS[:1]
    for key in (_key(path_of(kind, pool)) for kind in kinds for pool in Pool):
        if key not in there:
            yield f"the key {quoted(key)} is missing; start from a copy of the default one"


def _of_sizes(texts: Mapping[str, str]) -> Iterable[str]:
    for key, text in sorted(texts.items()):
        size = len(text.encode())
        if key in _FILES and size > MAX_TEMPLATE_BYTES:
            yield f"the key {quoted(key)} has {size} bytes; at most {MAX_TEMPLATE_BYTES} are allowed"
