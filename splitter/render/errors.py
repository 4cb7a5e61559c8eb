"""The error of a template, and how it is made where file and set are known but the fault is not."""

from collections.abc import Callable

from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason


class TemplateError(SplitterError):
    """A template that cannot be rendered: file, line where known, what is wrong, what to do."""

    def __init__(self, template_set: str, file: str, line: int | None, what: str) -> None:
        where = f"{file}, line {line}" if line else file
        super().__init__(
            Reason.TEMPLATE_INVALID,
            f"{where}: {what}. Mend it and try it with `splitter render`. "
            f'Until then the workloads of the template set "{template_set}" keep their last good twins.',
        )
        self.file = file
        self.line = line


# Made once for a template, called with the line (where known) and what is wrong.
Fault = Callable[[int | None, str], TemplateError]
