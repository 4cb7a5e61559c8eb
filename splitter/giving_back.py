"""Gives every workload back by removing its label, and waits: `splitter uninstall`.

It removes the label a user would remove; the running controller does the rest. With no controller
there, nothing would happen, so it says what is still split when the time is over, and how to go on.
When nothing is split in any namespace, it lets the CRD be deleted (manifests/admission/keep-crd.yaml).
The plugin's verb takes a person's options; in the image the Job of `helm uninstall` needs no plugin.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from splitter.core.labels_annotations import ANNOTATION_KEEP, CRD_NAME, SOURCES_SELECTOR
from splitter.core.names import Key
from splitter.exits import Exit
from splitter.kube.as_user import key_of, labelled, let_crd_go, remove_label
from splitter.kube.client import Client
from splitter.kube.lease import leading_elsewhere
from splitter.kube.paths import splits
from splitter.settings import Settings

_LOOK_S = 1.0

Connect = Callable[[], AbstractAsyncContextManager[tuple[Client, Settings]]]


def give_back(connect: Connect, namespace: str | None, selector: str | None, timeout_s: float) -> Exit:
    """Give back what is split, print how it went, and return the exit code.

    Without a namespace all are meant, or those that the settings name. With a selector it is about the
    workloads with these labels alone. Raises as `connect`.
    """
    try:
        left = asyncio.run(_give_back(connect, namespace, selector, timeout_s))
    except KeyboardInterrupt:
        sys.stderr.write("\nno longer waiting; what was begun goes on: splitter status\n")
        return Exit.INTERRUPTED
    if left:
        sys.stderr.write(
            f"not given back within {timeout_s:.0f} s: {', '.join(left)}. Is the controller running"
            " (kubectl -n splitter-system get pods)? Without it: docs/how-to/give-back-by-hand.md\n"
        )
        return Exit.NOT_ALL_BACK
    _say(
        "everything is given back; the controller, manifests/rbac.yaml and the CRD may go now"
        if selector is None
        else f"every workload with {selector} is given back"
    )
    return Exit.DONE


async def _give_back(
    connect: Connect, namespace: str | None, selector: str | None, timeout_s: float
) -> list[str]:
    async with connect() as (client, settings):
        namespaces = (namespace,) if namespace else settings.watch_namespaces
        # Asked once: who they were, whatever becomes of their labels.
        chosen = None if selector is None else await labelled(client, namespaces, selector)
        asked = ",".join(filter(None, (SOURCES_SELECTOR, selector)))
        for key, uid in (await labelled(client, namespaces, asked)).items():
            await remove_label(client, key, uid)
            _say(f"label removed from {key.kind.lower()} {key.namespace}/{key.name}")
        deadline = time.monotonic() + timeout_s
        while left := [key for key in await _split(client, namespaces) if chosen is None or key in chosen]:
            if time.monotonic() > deadline:
                await _tell_leader(client, settings.own_namespace)
                return [str(key) for key in left]
            await asyncio.sleep(_LOOK_S)
        if chosen is not None:
            return []
        if namespace is None and not await let_crd_go(client):
            sys.stderr.write(
                f"you may not change the CRD {CRD_NAME}; somebody who may has to let it go:"
                f" kubectl annotate crd {CRD_NAME} {ANNOTATION_KEEP}-\n"
            )
        return []


async def _tell_leader(client: Client, own_namespace: str) -> None:
    """Print which process leads and should have given back, and where to look."""
    if not own_namespace:
        return
    leader = await leading_elsewhere(client, own_namespace)
    leading = f"{leader} leads: its log says more" if leader else "no elected controller shows a sign of life"
    sys.stderr.write(f"{leading} (kubectl -n {own_namespace} get lease splitter)\n")


async def _split(client: Client, namespaces: tuple[str, ...]) -> list[Key]:
    """Return the workloads that still have a Split."""
    pages = [await client.get(splits(namespace)) for namespace in namespaces or ("",)]
    return [key_of(one) for page in pages for one in page["items"]]


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()
