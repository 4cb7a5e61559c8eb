"""`splitter bundle`: writes one archive with what a maintainer needs, without users' values.

`plugin.kube.bundle` reads, `plugin.report.bundle` leaves out what is nobody's business; here it is packed.
What cannot be read is said in the archive and on standard error, and the rest is written all the same.
"""

import asyncio
import io
import os
import sys
import tarfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import typer

from splitter import __version__
from splitter.exits import MendableError
from splitter.plugin.cli.cluster import Cluster
from splitter.plugin.cli.cluster_options import asks_cluster
from splitter.plugin.cli.completion import namespaces
from splitter.plugin.cli.target import Target, as_namespace
from splitter.plugin.kube.bundle import BundleParts, read_bundle
from splitter.plugin.report.bundle import files, overview
from splitter.report.printable import printable

_FOLDER = "splitter-bundle"
_MODE = 0o600


@asks_cluster(without=("namespace", "selector"))
def bundle(
    installation: str | None = typer.Option(
        None,
        "-n",
        "--installation",
        autocompletion=namespaces,
        help="splitter's own namespace. Default: as in the settings, or splitter-system.",
    ),
    namespace: str | None = typer.Option(
        None,
        "--namespace",
        autocompletion=namespaces,
        help="Namespace of the Splits. Default: the context's.",
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "-o",
        dir_okay=False,
        help="The archive to write. Default: splitter-bundle-<time>.tar.gz.",
    ),
    log_lines: int = typer.Option(
        5000, "--log-lines", min=1, help="Lines of each log, counted from its end."
    ),
    *,
    cluster: Cluster,
) -> None:
    """Write what a maintainer needs into one archive.

    Versions, settings, Splits, twins, Events, logs and metrics.

    No Secrets, nothing of pod templates. What cannot be read is said, and the rest is written.
    """
    if installation:
        as_namespace(installation)
    target = replace(cluster, namespace=namespace).target(None)
    read = asyncio.run(_read(cluster, target, installation, log_lines))
    packed = contents(read)
    file = output or Path(time.strftime(f"{_FOLDER}-%Y%m%d-%H%M%S.tar.gz", time.gmtime()))
    try:
        _write(file, archive(packed, time.time()))
    except OSError as error:
        raise MendableError(
            f"{file} cannot be written: {error.strerror}; name another file with -o"
        ) from error
    for part, why in sorted(read.failures.items()):
        sys.stderr.write(f"not in it: {part}: {printable(why)}\n")
    typer.echo(f"{file}: {len(packed)} files; look through it before you make it public")


def _write(file: Path, content: bytes) -> None:
    """Write a new file for its owner alone; never over one that is there, nor where a link leads.

    Raises OSError; what is written only in part is taken away.
    """
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except OSError:
        file.unlink(missing_ok=True)
        raise


async def _read(cluster: Cluster, target: Target, installation: str | None, log_lines: int) -> BundleParts:
    async with cluster.connected() as (client, settings):
        own = installation or settings.own_namespace
        if not own:
            raise MendableError("the settings name no own_namespace; name the installation's with -n")
        return await read_bundle(client, own, target.namespaces or settings.watch_namespaces, log_lines)


def contents(read: BundleParts) -> dict[str, str]:
    """Return each file of the archive, the overview first."""
    made = files(read.objects)
    for pod, text in read.logs.items():
        leads = pod.removesuffix("-previous") == read.leader
        made[f"logs/{'leader-' if leads else ''}{pod}.log"] = text
    made |= {f"metrics/{pod}.txt": text for pod, text in read.metrics.items()}
    return {"README.txt": overview(__version__, made, read.failures, read.leader), **made}


def archive(packed: Mapping[str, str], now_s: float) -> bytes:
    """Return a .tar.gz of these files, in a folder; `now_s` is their time, in seconds of the epoch."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, text in packed.items():
            content = text.encode(errors="replace")
            member = tarfile.TarInfo(f"{_FOLDER}/{name}")
            member.size, member.mtime, member.mode = len(content), int(now_s), _MODE
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
