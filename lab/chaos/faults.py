"""What may go wrong between a controller and its API server: small faults, each with a name.

`schedule` draws them, `proxy` commits them, `report` counts them. Pure: no request is made here.
"""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """One way in which an API server, or the way to it, fails."""

    SLOW = "slow"
    THROTTLED = "throttled"
    SERVER_ERROR = "server-error"
    UNAVAILABLE = "unavailable"
    CONFLICT = "conflict"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    ANSWER_LOST = "answer-lost"
    ANSWER_CUT = "answer-cut"
    REFUSED = "refused"
    STALE_LIST = "stale-list"
    WATCH_CUT = "watch-cut"
    WATCH_BROKEN = "watch-broken"
    WATCH_GONE = "watch-gone"
    WATCH_SILENT = "watch-silent"


class Reach(StrEnum):
    """Which requests a fault strikes."""

    ANY = "any request"
    WRITES = "writes"
    ANSWERS = "answers"  # of anything that is no watch
    LISTS = "lists"
    WATCHES = "pieces of watches"
    SERVER = "the server as a whole"


@dataclass(frozen=True, slots=True)
class Kind:
    """What one fault does. `share`: how much of what it reaches it strikes while it lasts."""

    reach: Reach
    share: float
    says: str


KINDS: dict[Fault, Kind] = {
    Fault.SLOW: Kind(Reach.ANY, 0.6, "0.1 to 3 s pass before a request is heard"),
    Fault.THROTTLED: Kind(Reach.ANY, 0.5, "429 with Retry-After: 1"),
    Fault.SERVER_ERROR: Kind(Reach.ANY, 0.5, "500"),
    Fault.UNAVAILABLE: Kind(Reach.ANY, 0.8, "503"),
    Fault.CONFLICT: Kind(Reach.WRITES, 0.7, "409 to a write"),
    Fault.UNAUTHORIZED: Kind(Reach.ANY, 1.0, "401: the token has expired"),
    Fault.FORBIDDEN: Kind(Reach.ANY, 1.0, "403 to one verb on one kind, given back later"),
    Fault.ANSWER_LOST: Kind(Reach.ANSWERS, 0.4, "carried out, and the connection is reset before the answer"),
    Fault.ANSWER_CUT: Kind(Reach.ANSWERS, 0.4, "carried out, and the connection is reset within the answer"),
    Fault.REFUSED: Kind(Reach.SERVER, 1.0, "every connection is reset, new ones are refused"),
    Fault.STALE_LIST: Kind(Reach.LISTS, 1.0, "watches are cut off, and lists answered as they were before"),
    Fault.WATCH_CUT: Kind(Reach.WATCHES, 0.5, "a watch ends in the middle of a line"),
    Fault.WATCH_BROKEN: Kind(Reach.WATCHES, 0.5, "a watch is reset in the middle of a line"),
    Fault.WATCH_GONE: Kind(Reach.WATCHES, 0.5, "a watch is told 410 Gone"),
    Fault.WATCH_SILENT: Kind(Reach.WATCHES, 1.0, "a watch says nothing any more, for as long as it is open"),
}

# What FORBIDDEN takes away: the HTTP method, and what the path ends with or contains.
RIGHTS: tuple[tuple[str, str], ...] = (
    ("PATCH", "/deployments/"),
    ("PUT", "/deployments/"),
    ("POST", "/deployments"),
    ("GET", "/pods"),
    ("GET", "/nodes"),
    ("GET", "/replicasets"),
    ("PATCH", "/replicasets/"),
    ("POST", "/events"),
    ("PATCH", "/splits/"),
    ("PATCH", "/pods/"),
    ("DELETE", "/deployments/"),
    ("PUT", "/leases/"),
    ("PATCH", "/leases/"),
    ("PATCH", "/statefulsets/"),
    ("POST", "/eviction"),
)


@dataclass(frozen=True, slots=True)
class Stroke:
    """One fault while it lasts; `seed` is that of its own dice, `right` an index into RIGHTS."""

    fault: Fault
    seed: int
    right: int = 0

    def __str__(self) -> str:
        """Return it in words."""
        if self.fault is not Fault.FORBIDDEN:
            return f"{self.fault}: {KINDS[self.fault].says}"
        method, where = RIGHTS[self.right]
        return f"{self.fault}: 403 to {method} {where.strip('/')}"
