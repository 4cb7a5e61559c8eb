"""The thresholds of a policy, whose form is `labels_annotations.words.RELIEF`: `cpu=85,memory=90`."""

from splitter.core.relief.model import Resource, Thresholds

_OFF = "off"
_RESTARTS = "restarts"


def thresholds_of(relief: str | None) -> Thresholds | None:
    """Return from which percent of a node on it is hot; None where nobody asks for relief.

    >>> thresholds_of("cpu=85,memory=90").percent[Resource.MEMORY]
    90.0
    """
    if relief is None or relief == _OFF:
        return None
    written = (part.split("=") for part in relief.split(",") if part != _RESTARTS)
    return Thresholds({Resource(name): float(percent) for name, percent in written})


def may_restart(relief: str | None, own: str | None) -> bool:
    """Whether members of a StatefulSet may be restarted for relief: it says so itself, and that is in force.

    `own` is the workload's own annotation. What a Namespace or the settings say restarts nobody.

    >>> may_restart("cpu=85,restarts", None)
    False
    """
    return relief is not None and relief == own and _RESTARTS in relief.split(",")
