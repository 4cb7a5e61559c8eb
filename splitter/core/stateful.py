"""The part of a source's view that only a StatefulSet has (`model`)."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StatefulView:
    """What only a StatefulSet has. While it is split, `SourceView.replicas` is the saved N."""

    spec_replicas: int
    status_replicas: int
    available_replicas: int
    created: datetime
    saved: int | None = None  # N, as our annotation has it
    left: int = 0  # what we have last left in spec.replicas
    writer: str = ""  # who has written spec.replicas last
    declared_by: str = ""  # the GitOps manager whose manifests say what spec.replicas is
    service: str = ""
    first_ordinal: int = 0
    partition: int = 0
    revision: str = ""  # the one that its pods are rolled to
    on_delete: bool = False  # its pods get a new template only when somebody deletes them
    update_at_once: int = 1  # so many members its own update takes at a time
    min_ready_s: float = 0.0  # a member is available when it has been ready for so long
    deletes_claims: bool = False  # a scale-down deletes its volumes
    claim_templates: tuple[str, ...] = ()
    parallel: bool = False  # podManagementPolicy; else OrderedReady: no pod before all lower are available
    updating: str = ""  # how far its own rolling update is; empty: there is none

    @property
    def is_written_by_others(self) -> bool:
        """Whether somebody has scaled it since our last write; 0 says nothing, it stands there anyway."""
        return self.saved is not None and self.spec_replicas not in {0, self.left}

    def is_left_by_us(self, shown: int | None) -> bool:
        """Whether `spec.replicas` is nobody's N, but what a move of ours has left there.

        `shown` is N as the Split has it. The annotation was removed in the middle of the move: by hand, or by
        a tool that owns all annotations of what it applies. Taken for N, what is left would be a scale-in.
        """
        return self.saved is None and not self.writer and shown not in {None, self.spec_replicas}
