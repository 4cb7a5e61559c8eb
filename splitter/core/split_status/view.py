"""A Split as one reconcile sees it: whose it is, what it asks for, and the status that was written last."""

from dataclasses import dataclass, field

from splitter.core.split_status import UNREPORTED, SplitStatus


@dataclass(frozen=True, slots=True)
class SplitView:
    """The Split object as last observed."""

    uid: str
    owner_uids: tuple[str, ...]
    takes_over: bool  # False: it only reports a refusal
    status: SplitStatus = UNREPORTED
    ordinals: tuple[int, ...] | None = None  # in placement mode
    replicas: int | None = None  # of a StatefulSet: what an autoscaler may write
    format: int = 1  # the form in which it is written (labels_annotations.STATE_FORMAT)
    generation: int = 0  # of its spec, to say which one the status is about
    resource_version: str = field(default="", compare=False)
