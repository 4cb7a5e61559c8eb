"""Builds what real nodes run, once, and keeps it in the user's cache beside the control plane.

kubelet and kube-proxy, containerd with its shim and ctr, three CNI plugins, the guest of ours and its images
come from Go; nft and runc from PATH, else from Debian's packages. `real.world` starts them.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from lab.sandbox import compiling, debian, versions
from lab.sandbox.build import SYSTEM, cache_directory, digest, kubernetes, module_sources
from lab.sandbox.errors import SandboxError
from lab.sandbox.real import images
from lab.sandbox.real.world import SYSTEM_PATHS

CONTAINERD_VERSION = "2.3.7"
CNI_VERSION = "1.9.1"
PROGRAMS = (
    *("kubelet", "kube-proxy", "containerd", "containerd-shim-runc-v2", "ctr"),
    *("cni/ptp", "cni/loopback", "cni/host-local", "pause", "runtime", "load", "logind", "nft", "runc"),
)
IMAGES = "images.tar"

_CONTAINERD = "github.com/containerd/containerd/v2"
_CNI = "github.com/containernetworking/plugins/plugins"
_GO = "go 1.26.0"  # as in kubelet/go.mod; containerd and the plugins need no newer one
_STATIC = ("-tags", "no_btrfs,no_devmapper,no_zfs,no_tracing")
# With the libraries that a small image of Debian lacks.
_DEBIAN: Mapping[str, tuple[str, ...]] = {
    "nft": (
        *("nftables", "libnftables1", "libnftnl11", "libmnl0", "libxtables12", "libjansson4"),
        *("libedit2", "libbsd0", "libmd0", "libgmp10"),
    ),
    "runc": ("runc", "libseccomp2"),
}
_WRAPPER = """#!/bin/sh
here=${{0%/*}}/debian-{name}
LD_LIBRARY_PATH=$(echo "$here"/usr/lib/*-linux-gnu "$here"/lib/*-linux-gnu | tr ' ' :)
export LD_LIBRARY_PATH
exec "$here/usr/sbin/{name}" "$@"
"""


def key(kubernetes_version: str = versions.PINNED, system: str = SYSTEM) -> str:
    """Return the name of the build, such as `real-nodes-1.36.3-linux-x86_64-5d0c...`."""
    sources = {
        f"{module}/{name}": content
        for module in ("real/kubelet", "real/guest")
        for name, content in module_sources(module).items()
    }
    sources["versions"] = f"containerd {CONTAINERD_VERSION} CNI {CNI_VERSION}".encode()
    sources["images"] = Path(images.__file__).read_bytes()
    return f"real-nodes-{kubernetes_version}-{system}-{digest(sources)}"


def real_nodes(progress: Callable[[str], None], environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with what real nodes run, building it when it is missing (3 minutes on 2 cores).

    Raises SandboxError when a build fails, or when there is neither nft nor runc and none can be had.
    """
    cache = cache_directory(environment)
    version = versions.kubernetes_version(environment)
    go = compiling.GoOnDemand(_GO, cache, progress)
    home = cache / key(version)

    def build_it(into: Path) -> None:
        progress("building kubelet, kube-proxy, containerd and more once: about 3 minutes on 2 cores ...")
        for name, packages in _DEBIAN.items():
            _find(name, packages, into)
        _build_node(go, version, into, progress)
        _build_guest(go, into, progress)

    compiling.once(home, progress, build_it)
    missing = [name for name in PROGRAMS if not os.access(home / name, os.X_OK)]
    if missing:
        raise SandboxError(
            f"{home} has no {', '.join(missing)}: they were there when it was built. Delete the directory; it"
            " is built anew then."
        )
    return home


def _find(name: str, packages: tuple[str, ...], into: Path) -> None:
    """Link a program of the system's into the build, or take it from Debian's packages."""
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *SYSTEM_PATHS))
    if (program := shutil.which(name, path=path)) is not None:
        (into / name).symlink_to(program)
        return
    try:
        debian.unpack(into / f"debian-{name}", *packages)
    except SandboxError as fault:
        raise SandboxError(
            f"real nodes need {name}, and PATH has none. {fault} Install the package {packages[0]}, then try"
            " again."
        ) from fault
    (into / name).write_text(_WRAPPER.format(name=name))
    (into / name).chmod(0o755)


def _build_node(go: compiling.GoOnDemand, version: str, into: Path, progress: Callable[[str], None]) -> None:
    what = f"kubelet and kube-proxy {version}"
    kubernetes(go, what, version, module_sources("real/kubelet"), into / "node", progress=progress)
    for name in ("kubelet", "kube-proxy"):
        (into / name).symlink_to("node")
    commands = ("containerd", "containerd-shim-runc-v2", "ctr")
    compiling.install(
        go,
        f"containerd {CONTAINERD_VERSION}",
        [f"{_CONTAINERD}/cmd/{command}@v{CONTAINERD_VERSION}" for command in commands],
        into,
        progress=progress,
        linker=f"-s -w -X {_CONTAINERD}/version.Version=v{CONTAINERD_VERSION}",
        flags=_STATIC,
    )
    plugins = ("main/ptp", "main/loopback", "ipam/host-local")
    packages = [f"{_CNI}/{plugin}@v{CNI_VERSION}" for plugin in plugins]
    compiling.install(go, f"CNI plugins {CNI_VERSION}", packages, into, progress=progress)
    (into / "cni").mkdir()  # containerd runs whatever lies in such a folder
    for plugin in plugins:
        (into / Path(plugin).name).rename(into / "cni" / Path(plugin).name)


def _build_guest(go: compiling.GoOnDemand, into: Path, progress: Callable[[str], None]) -> None:
    command = [go.command(), "build", "-trimpath", "-ldflags", "-s -w", "-o", str(into / "guest"), "."]
    with compiling.copied(module_sources("real/guest")) as module:
        compiling.run_go("guest", command, progress, directory=module, logs=into.parent)
    for name in ("load", "logind", "pause", "runtime"):
        (into / name).symlink_to("guest")
    images.write(into / IMAGES, into / "guest")
