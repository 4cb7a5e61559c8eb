"""Connects a verb to its cluster as kubectl would: for all verbs but `run`, which waits for its API server.

Nothing here writes.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from splitter.exits import MendableError
from splitter.kube.access import check_connection
from splitter.kube.client import ApiError, Client
from splitter.kube.connect import connect
from splitter.kube.kubeconfig import kubeconfig_path
from splitter.settings import Settings
from splitter.settings.loading import load_settings

_CONNECTIONS = 32  # of `plan`, which reads many kinds at once


@asynccontextmanager
async def connected(
    settings_file: Path | None,
    kubeconfig: Path | None = None,
    context: str | None = None,
    *,
    at_once: bool = True,
) -> AsyncIterator[tuple[Client, Settings]]:
    """Connect with the kubeconfig that is named, else KUBECONFIG, ~/.kube/config, the pod's service account.

    `at_once`: ask the API server now whether it answers; without it, nothing is asked yet.
    Raises SplitterError when the API server does not answer, MendableError with its words when it
    refuses.
    """
    settings = load_settings(settings_file)
    path = kubeconfig or settings.kubeconfig or kubeconfig_path()
    client = await connect(
        path, context or settings.context, settings.api_timeout_s, connections=_CONNECTIONS
    )
    try:
        if at_once:
            await check_connection(client)
        yield client, settings
    except ApiError as error:
        raise MendableError(f"the API server answered: {error}") from error
    finally:
        await client.close()
