"""Says what an answer of the API server that is no success means for a reconcile."""

from http import HTTPStatus

from splitter.kube.client import KIND_MISSING, ApiError


def is_refusal(error: ApiError) -> bool:
    """Whether the API server has surely not done what it was asked for; a pod under two budgets is a 500."""
    clear = HTTPStatus.BAD_REQUEST <= error.status < HTTPStatus.INTERNAL_SERVER_ERROR
    return clear or "PodDisruptionBudget" in error.message


def is_reconciling(error: ApiError) -> bool:
    """Whether it mends itself, so that the next reconcile says what is: no answer, a race, throttling."""
    if error.reason in {"AlreadyExists", KIND_MISSING}:
        return False  # somebody's object has the name of one of ours, or somebody deleted our CRD
    brief = (
        error.status in {0, HTTPStatus.TOO_MANY_REQUESTS} or error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )
    return brief or error.is_lost_race
