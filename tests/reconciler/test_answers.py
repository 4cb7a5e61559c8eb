"""What an answer of the API server means: a race, a refusal, or something that mends itself."""

import pytest

from splitter.kube.client import KIND_MISSING, ApiError
from splitter.reconciler.answers import is_reconciling, is_refusal

FOREIGN_UID = "Precondition failed: UID in precondition: a, UID in object meta: b"
BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support"


@pytest.mark.parametrize(
    ("status", "reason", "message", "meant"),
    [
        # (a lost race, surely not done, mends itself)
        (0, "", "connection reset", (False, False, True)),
        (400, "BadRequest", "", (False, True, False)),
        (403, "Forbidden", "", (False, True, False)),
        (404, "NotFound", "", (True, True, True)),
        (409, "Conflict", "the object has been modified", (True, True, True)),
        (409, "AlreadyExists", "", (True, True, False)),
        (404, KIND_MISSING, "", (True, True, False)),
        (422, "Invalid", FOREIGN_UID, (True, True, True)),
        (422, "Invalid", "metadata.uid: Invalid value", (True, True, True)),
        (422, "Invalid", "spec.replicas: Invalid value", (False, True, False)),
        (422, "Invalid", "ValidatingAdmissionPolicy 'guid' denied request", (False, True, False)),
        (429, "TooManyRequests", "", (False, True, True)),
        (500, "InternalError", BUDGETS, (False, True, True)),
        (500, "InternalError", "etcd", (False, False, True)),
        (504, "Timeout", "", (False, False, True)),
    ],
)
def test_means(status: int, reason: str, message: str, meant: tuple[bool, bool, bool]) -> None:
    """Who wrote in between, whether it was done, and whether anybody has to be told."""
    error = ApiError(status, reason, message)
    assert (error.is_lost_race, is_refusal(error), is_reconciling(error)) == meant
