"""The key of a workload: kind, namespace and name, all of them checked.

An object says of itself whose it is, and whoever may write the object chooses the words. So a `Key` is made
of names that the API server would accept, or it is not made: `../../shop/deployments/web` is nobody's name.
"""

import re
from dataclasses import dataclass
from typing import Final, TypeGuard

DEPLOYMENT: Final = "Deployment"
STATEFUL_SET: Final = "StatefulSet"

# RFC 1123 subdomains: what the API server asks of the names of all kinds that splitter asks for. (A namespace
# has no dot in its name; one with a dot is nowhere, and asking for it harms nobody.)
NAME_MAX: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# Both the first one and how many there are is an int32: so no ordinal has more digits than their sum.
_ORDINAL: Final = re.compile(r"0|[1-9][0-9]{0,9}")


def is_name(text: object) -> TypeGuard[str]:
    """Whether an object can be called so.

    >>> is_name("web-2.shop"), is_name("../web"), is_name("a/b"), is_name("")
    (True, False, False, False)
    """
    return isinstance(text, str) and len(text) <= NAME_MAX and _NAME.fullmatch(text) is not None


def ordinal_of(text: str) -> int | None:
    """Return the number of a StatefulSet's pod; None of any text that is none, such as too many digits.

    >>> ordinal_of("12"), ordinal_of("012"), ordinal_of("9" * 5000)
    (12, None, None)
    """
    return int(text) if _ORDINAL.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class Key:
    """Names one source: what the queue holds and what every log line is about.

    Raises ValueError where namespace or name is none that an object can have.
    """

    kind: str
    namespace: str
    name: str

    def __post_init__(self) -> None:
        """Refuse what no object is called."""
        if not (is_name(self.name) and is_name(self.namespace)):
            raise ValueError("its namespace or its name is none that an object can have")

    def __str__(self) -> str:
        """Return `namespace/name`, as kubectl users write it; with its kind where it is no Deployment."""
        kind = "statefulset/" if self.kind == STATEFUL_SET else ""
        return f"{self.namespace}/{kind}{self.name}"
