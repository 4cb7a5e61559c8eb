"""The thresholds of a policy, whose form is `labels_annotations.words.RELIEF`: `cpu=85,memory=90`."""

from splitter.core.relief.model import Resource, Thresholds

_OFF = "off"


def thresholds_of(relief: str | None) -> Thresholds | None:
    """Return from which percent of a node on it is hot; None where nobody asks for relief.

    >>> thresholds_of("cpu=85,memory=90").percent[Resource.MEMORY]
    90.0
    """
    if relief is None or relief == _OFF:
        return None
    written = (part.split("=") for part in relief.split(","))
    return Thresholds({Resource(name): float(percent) for name, percent in written})
