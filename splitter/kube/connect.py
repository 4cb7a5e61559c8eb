"""Makes the one client of a process: with a kubeconfig, or with the pod's own service account.

The command line and the operator call it once. It reads credentials and sends nothing.
"""

import asyncio
import os
from pathlib import Path

from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from yaml import YAMLError

from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.kube.client import Answered, Client, at_the_last_moment
from splitter.kube.kubeconfig import environment_proxy

# Where a pod finds its own credentials; load_incluster_config reads the same place.
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


async def connect(
    kubeconfig: Path | None,
    context: str | None,
    timeout_s: float,
    connections: int,
    answered: Answered = lambda *_: None,
) -> Client:
    """Connect with a kubeconfig, or with the pod's own service account when none is named.

    Nothing is sent yet; `answered` is told of each request. Raises SplitterError (ApiUnreachable) when there
    are no usable credentials.
    """
    in_cluster = await asyncio.to_thread(_SERVICE_ACCOUNT.exists)
    configuration = Configuration()
    configuration.connection_pool_maxsize = connections
    configuration.trace_configs = [at_the_last_moment()]
    # The library would have aiohttp look at the environment and at ~/.netrc for each request, in threads.
    configuration.client_session_kwargs = {"trust_env": False}
    try:
        if kubeconfig is not None:
            await asyncio.to_thread(_must_be_readable, kubeconfig)
            await load_kube_config(
                config_file=str(kubeconfig),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        elif in_cluster:
            load_incluster_config(client_configuration=configuration)
        else:
            raise SplitterError(
                Reason.API_UNREACHABLE,
                "there are no credentials: KUBECONFIG is not set and this is not a pod with a service"
                " account. Set KUBECONFIG, or run splitter in the cluster (manifests/)",
            )
    except (ConfigException, OSError, ValueError, TypeError, KeyError, AttributeError, YAMLError) as error:
        raise SplitterError(
            Reason.API_UNREACHABLE,
            f"the kubeconfig {kubeconfig or ''} cannot be used: {error}. Check KUBECONFIG and the context",
        ) from error
    configuration.proxy = configuration.proxy or environment_proxy(configuration.host)
    return Client(ApiClient(configuration=configuration), timeout_s, answered)


def _must_be_readable(kubeconfig: Path) -> None:
    """Raise OSError for a file that is not there: the library would miss a context in it instead."""
    for path in str(kubeconfig).split(os.pathsep):
        with Path(path).open(encoding="utf-8"):
            pass
