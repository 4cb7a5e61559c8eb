"""What goes wrong in the sandbox, in words for the person who started it.

Every module of the sandbox raises these; the demo, the tests and the command line print them as they are.
Nothing here decides anything.
"""


class SandboxError(Exception):
    """The sandbox could not do what was asked; the message says what happened, why, and what to do."""


class ApiError(SandboxError):
    """The API server refused a request.

    `status` is the HTTP status (404, 409, ...), `reason` Kubernetes' own word for it (`NotFound`,
    `Conflict`, ...).
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
