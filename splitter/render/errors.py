"""The errors of templates and template sets."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from splitter.core.errors import SplitterError
from splitter.core.labels_annotations import ANNOTATION_NAMESPACES, ANNOTATION_TEMPLATE
from splitter.core.labels_annotations.words import nearest, quoted
from splitter.core.reasons import Reason
from splitter.core.template_sets import TemplateSet


def _until_then(template_set: str) -> str:
    return f"Until then the workloads of the template set {quoted(template_set)} keep their last good twins."


class TemplateError(SplitterError):
    """A template that cannot be rendered: file, line where known, what is wrong, what to do.

    `lasting` is False where equal input may fare better another time.
    """

    _MEND = "Mend it and try it with `splitter render`."

    def __init__(
        self,
        template_set: str,
        file: str,
        line: int | None,
        what: str,
        advice: str = _MEND,
        *,
        lasting: bool = True,
    ) -> None:
        where = f"{file}, line {line}" if line else file
        super().__init__(Reason.TEMPLATE_INVALID, f"{where}: {what}. {advice} {_until_then(template_set)}")
        self.file = file
        self.line = line
        self.what = what
        self.lasting = lasting


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that was reached: where, which and how much, what to do, and whether it is so each time."""

    template_set: str
    file: str
    line: int | None
    what: str
    advice: str
    lasting: bool = True


class LimitError(TemplateError):
    """A rendering that reached a limit, or ended its process."""

    def __init__(self, reached: Reached) -> None:
        super().__init__(
            reached.template_set,
            reached.file,
            reached.line,
            reached.what,
            reached.advice,
            lasting=reached.lasting,
        )
        self.reached = reached


# Made once for a template, called with the line (where known) and what is wrong.
Fault = Callable[[int | None, str], TemplateError]


def no_such_set(name: str, known: Iterable[str]) -> SplitterError:
    """Return the error for workloads of a set that does not exist."""
    names = tuple(sorted(known))
    near = nearest(name, names)
    advice = f'did you mean "{near}"?' if near else f"known are: {', '.join(names)}."
    return SplitterError(
        Reason.TEMPLATE_INVALID,
        f"there is no template set {quoted(name)}; {advice} Name another one in {ANNOTATION_TEMPLATE}, or"
        f" write it as a ConfigMap of that name in splitter's own namespace. {_until_then(name)}",
    )


def not_allowed(template_set: TemplateSet, namespace: str) -> SplitterError:
    """Return the error for a workload in a namespace that a set does not allow."""
    named = ", ".join(template_set.namespaces)
    may = f"may be used in the namespaces {named}" if named else "names no namespace that may use it"
    return SplitterError(
        Reason.TEMPLATE_INVALID,
        f"the template set {quoted(template_set.name)} {may}, and this is {namespace}. Add it to the"
        f" annotation {ANNOTATION_NAMESPACES} of ConfigMap {template_set.config_map}, or name another set in"
        f" {ANNOTATION_TEMPLATE}. {_until_then(template_set.name)}",
    )
