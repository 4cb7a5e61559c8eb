"""Builds the control plane and KWOK once, Karpenter and Helm when asked, and keeps them in the user's cache.

`Sandbox.start` calls `programs` and, when it shall have an autoscaler, `karpenter`; what they return is run
by `controlplane`. The tests of a chart call `helm`. The cache is keyed by the versions, the platform and the
Go module's own files, so a second clone of the repository builds nothing and a changed main.go builds anew.
One build at a time (a file lock), and never half a result: it is built in a temporary directory and renamed.
Nothing is written outside the cache directory, except into Go's own caches.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from splitter.sandbox import toolchain, versions
from splitter.sandbox.errors import SandboxError
from splitter.sandbox.processes import Nursery, last_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

KWOK_VERSION = "0.8.0"
KARPENTER_VERSION = "1.15.0"  # as in karpenter/go.mod
HELM_VERSION = "4.3.1"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
# Go module -> its files. Karpenter's only pins versions: the program is upstream's own, a tool of the module.
SOURCES = {"controlplane": ("go.mod", "go.sum", "main.go"), "karpenter": ("go.mod", "go.sum")}

_REPORT_EVERY_S = 15.0
_STAMP = "k8s.io/component-base/version"
_BUILD = ("build", "-trimpath", "-ldflags")
SYSTEM = f"{platform.system()}-{platform.machine()}".lower()
_KARPENTER = "sigs.k8s.io/karpenter"
_HELM = "helm.sh/helm/v4"
_HELM_GO = "go 1.26.0"  # as in its go.mod; its dependencies need no newer one
# The kinds that Karpenter's KWOK provider works with. It has more, which stand behind feature gates.
_CRDS = (
    "pkg/apis/crds/karpenter.sh_nodepools.yaml",
    "pkg/apis/crds/karpenter.sh_nodeclaims.yaml",
    "kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml",
)


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs of the sandbox lie."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    kwok: Path


@dataclass(frozen=True, slots=True)
class KarpenterFiles:
    """Where Karpenter lies, and its own CustomResourceDefinitions."""

    program: Path
    crds: tuple[Path, ...]


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where built programs are kept: `$XDG_CACHE_HOME/splitter/sandbox`, by default under ~/.cache."""
    base = environment.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "splitter" / "sandbox"


def module_sources(module: str = "controlplane") -> dict[str, bytes]:
    """Return a Go module's files by name, as they lie in the package."""
    folder = resources.files("splitter.sandbox").joinpath(module)
    return {name: folder.joinpath(name).read_bytes() for name in SOURCES[module]}


def build_key(
    sources: Mapping[str, bytes],
    *,
    kubernetes: str = versions.PINNED,
    kwok: str = KWOK_VERSION,
    system: str = SYSTEM,
) -> str:
    """Return the name of a build: the same inputs give the same name, any changed one another.

    Example: `kubernetes-1.36.3-kwok-0.8.0-linux-x86_64-3f2a...`.
    """
    return f"kubernetes-{kubernetes}-kwok-{kwok}-{system}-{_digest(sources)}"


def karpenter_key(system: str = SYSTEM) -> str:
    """Return the name of the build of Karpenter, such as `karpenter-1.15.0-linux-x86_64-6cf0...`."""
    return f"karpenter-{KARPENTER_VERSION}-{system}-{_digest(module_sources('karpenter'))}"


def _digest(sources: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(sources):
        # The length keeps two files from being read as one another's beginning.
        digest.update(f"{name} {len(sources[name])}\n".encode())
        digest.update(sources[name])
    return digest.hexdigest()[:16]


def programs(progress: Callable[[str], None], environment: Mapping[str, str] = os.environ) -> Programs:
    """Return the sandbox's programs, building those that are missing.

    Takes no time when they are in the cache, about 6 minutes on 2 cores when nothing is. With
    SPLITTER_KUBERNETES set it is that version. With KUBEBUILDER_ASSETS set, the Kubernetes programs are taken
    from there and only KWOK is built.
    Raises SandboxError when there is no Go, when a build fails (with the compiler's last lines), when there
    is no such version, or when KUBEBUILDER_ASSETS lacks a program.
    """
    cache = cache_directory(environment)
    version = versions.kubernetes_version(environment)
    sources = module_sources()
    go = _GoOnDemand(sources["go.mod"].decode(), cache, progress)
    assets = environment.get("KUBEBUILDER_ASSETS")
    if assets:
        ready_made = _ready_made(Path(assets))
        home = cache / f"kwok-{KWOK_VERSION}-{SYSTEM}"
        _once(home, progress, lambda into: _build_kwok(go, into, progress))
        return Programs(*(*ready_made, home / "kwok"))
    home = cache / build_key(sources, kubernetes=version)

    def build_both(into: Path) -> None:
        progress(
            f"building Kubernetes {version} and KWOK {KWOK_VERSION} once: about 6 minutes on 2 cores ..."
        )
        _build_control_plane(go, version, sources, into, progress=progress)
        _build_kwok(go, into, progress)

    _once(home, progress, build_both)
    return Programs(*(home / name for name in (*NAMES, "kwok")))


def karpenter(progress: Callable[[str], None], environment: Mapping[str, str] = os.environ) -> KarpenterFiles:
    """Return Karpenter with its KWOK provider, building it when it is missing (3 minutes on 2 cores).

    It needs a newer Go than the control plane. Raises SandboxError as `programs` does.
    """
    cache = cache_directory(environment)
    sources = module_sources("karpenter")
    go = _GoOnDemand(sources["go.mod"].decode(), cache, progress)
    home = cache / karpenter_key()

    def build_it(into: Path) -> None:
        progress(f"building Karpenter {KARPENTER_VERSION} once: about 3 minutes on 2 cores ...")
        _build_karpenter(go, sources, into, progress)

    _once(home, progress, build_it)
    return KarpenterFiles(home / "karpenter", tuple(home / Path(path).name for path in _CRDS))


def helm(progress: Callable[[str], None], environment: Mapping[str, str] = os.environ) -> Path:
    """Return Helm, building it when it is missing (3 minutes on 2 cores).

    Raises SandboxError as `programs` does.
    """
    cache = cache_directory(environment)
    go = _GoOnDemand(_HELM_GO, cache, progress)
    home = cache / f"helm-{HELM_VERSION}-{SYSTEM}"

    def build_it(into: Path) -> None:
        progress(f"building Helm {HELM_VERSION} once: about 3 minutes on 2 cores ...")
        # Without the stamp it calls itself by the version of its next minor release.
        linker = f"-s -w -X {_HELM}/internal/version.version=v{HELM_VERSION}"
        package = f"{_HELM}/cmd/helm@v{HELM_VERSION}"
        _install(go, f"Helm {HELM_VERSION}", package, into, progress=progress, linker=linker)

    _once(home, progress, build_it)
    return home / "helm"


def _ready_made(assets: Path) -> tuple[Path, ...]:
    missing = [name for name in NAMES if not os.access(assets / name, os.X_OK)]
    if missing:
        raise SandboxError(
            f"KUBEBUILDER_ASSETS is {assets}, which has no {', '.join(missing)}. The sandbox needs all of "
            f"{', '.join(NAMES)} (envtest's own bundle lacks the controller manager and the scheduler). "
            "Put them there, or unset KUBEBUILDER_ASSETS to have them built."
        )
    return tuple(assets / name for name in NAMES)


@dataclass(slots=True)
class _GoOnDemand:
    """Go, looked for only when something really has to be built."""

    go_mod: str
    cache: Path
    progress: Callable[[str], None]
    found: toolchain.Go | None = None

    def command(self) -> str:
        if self.found is None:
            self.found = toolchain.find_go(toolchain.required_version(self.go_mod), self.cache, self.progress)
        return str(self.found.command)


def _once(home: Path, progress: Callable[[str], None], build: Callable[[Path], None]) -> None:
    """Have `build` fill `home` unless it is there already."""
    if home.exists():
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    with _lock(home.parent / "build.lock", progress):
        if home.exists():  # somebody else built it while we waited for the lock
            return
        partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.partial-", dir=home.parent))
        try:
            build(partial)
            partial.rename(home)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _lock(path: Path, progress: Callable[[str], None]) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("another process is building the control plane; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # closing the file releases the lock, also when we are killed


def _build_control_plane(
    go: _GoOnDemand,
    version: str,
    sources: Mapping[str, bytes],
    into: Path,
    *,
    progress: Callable[[str], None],
) -> None:
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    # Without the stamps kubectl and the API server call themselves v0.0.0.
    linker = " ".join(["-s -w", *(f"-X {_STAMP}.{name}={value}" for name, value in stamps.items())])
    command = [go.command(), *_BUILD, linker, "-o", str(into / "controlplane"), "."]
    with _copied(sources) as module:
        if version != versions.PINNED:
            line = ".".join(map(str, toolchain.required_version(go.go_mod)))
            (module / "go.sum").unlink()
            text = versions.derived_go_mod(version, go.command(), f"go {line}", module)
            (module / "go.mod").write_text(text)
            command.insert(2, "-mod=mod")  # it completes both files
        _run_go(f"Kubernetes {version}", command, progress, directory=module, logs=into.parent)
    for name in NAMES:
        (into / name).symlink_to("controlplane")


def _build_karpenter(
    go: _GoOnDemand, sources: Mapping[str, bytes], into: Path, progress: Callable[[str], None]
) -> None:
    linker = f"-s -w -X {_KARPENTER}/pkg/operator.Version={KARPENTER_VERSION}"
    command = [go.command(), *_BUILD, linker, "-o", str(into / "karpenter"), f"{_KARPENTER}/kwok"]
    with _copied(sources) as module:
        _run_go(f"Karpenter {KARPENTER_VERSION}", command, progress, directory=module, logs=into.parent)
        # The kinds come from the very module that was built, so the two cannot disagree.
        found = subprocess.run(
            [go.command(), "list", "-m", "-f", "{{.Dir}}", _KARPENTER],
            env=_go_environment(),
            cwd=module,
            capture_output=True,
            text=True,
            check=True,
        )
    for path in _CRDS:
        shutil.copyfile(Path(found.stdout.strip(), path), into / Path(path).name)


@contextmanager
def _copied(sources: Mapping[str, bytes]) -> Iterator[Path]:
    """Yield a directory with a Go module: Go wants to write there, and the package may be read-only."""
    with tempfile.TemporaryDirectory(prefix="splitter-go-module-") as directory:
        for name, content in sources.items():
            Path(directory, name).write_bytes(content)
        yield Path(directory)


def _build_kwok(go: _GoOnDemand, into: Path, progress: Callable[[str], None]) -> None:
    package = f"sigs.k8s.io/kwok/cmd/kwok@v{KWOK_VERSION}"
    _install(go, f"KWOK {KWOK_VERSION}", package, into, progress=progress)


def _install(
    go: _GoOnDemand,
    what: str,
    package: str,
    into: Path,
    *,
    progress: Callable[[str], None],
    linker: str = "-s -w",
) -> None:
    command = [go.command(), "install", "-trimpath", "-ldflags", linker, package]
    _run_go(what, command, progress, directory=into, logs=into.parent, extra={"GOBIN": str(into)})


def _go_environment(extra: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    # GOWORK: a go.work above the temporary directory must not swallow the module.
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", **extra}


def _run_go(
    what: str,
    command: Sequence[str],
    progress: Callable[[str], None],
    *,
    directory: Path,
    logs: Path,
    extra: Mapping[str, str] = MappingProxyType({}),
) -> None:
    log = logs / f"{what.lower().replace(' ', '-')}-build.log"
    log.unlink(missing_ok=True)
    environment = _go_environment(extra)
    started_s = time.monotonic()
    nursery = Nursery()
    try:
        process = nursery.start("go", command, log=log, environment=environment, directory=directory).process
        while True:
            try:
                code = process.wait(timeout=_REPORT_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                progress(f"still building {what}: {time.monotonic() - started_s:.0f} s ...")
    finally:
        nursery.end()
        if log.exists():
            log.write_text(toolchain.hide_hosts(log.read_text(errors="replace")))
    if code != 0:
        raise SandboxError(
            f"building {what} failed: `go {command[1]}` ended with code {code} after "
            f"{time.monotonic() - started_s:.0f} s. Look for a full disk, no network or too little "
            f"memory; the whole log is {log}; it ends:\n{last_lines(log)}"
        )
    progress(f"built {what} in {time.monotonic() - started_s:.0f} s")
