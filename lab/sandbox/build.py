"""Builds the control plane and KWOK once, Helm when asked for, and keeps them in the user's cache.

`Sandbox.start` calls `programs`, and `controlplane` runs what it returns. The tests of a chart call `helm`.
What else runs beside splitter is built by `upstream`. The cache is keyed by the versions, the platform and
the Go module's own files, so a second clone of the repository builds nothing and a changed main.go builds
anew. One build at a time (a file lock), and never half a result: it is built in a temporary directory and
renamed. Nothing is written outside the cache directory, except into Go's own caches.
"""

import hashlib
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from lab.sandbox import compiling, toolchain, versions
from lab.sandbox.errors import SandboxError

KWOK_VERSION = "0.8.0"
HELM_VERSION = "4.3.1"
NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
# Go module -> its files, if it has more than the pins of programs of others (`upstream`).
_PINS = ("go.mod", "go.sum")
SOURCES = {
    "controlplane": (*_PINS, "main.go"),
    "real/kubelet": (*_PINS, "main.go"),
    "real/guest": ("go.mod", "main.go", "load.go", "logind.go", "pause.go", "runtime.go", "web.go"),
}

_STAMP = "k8s.io/component-base/version"
_BUILD = ("build", "-trimpath", "-ldflags")
SYSTEM = f"{platform.system()}-{platform.machine()}".lower()
_HELM = "helm.sh/helm/v4"
_HELM_GO = "go 1.26.0"  # as in its go.mod; its dependencies need no newer one


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs of the sandbox lie."""

    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    kwok: Path


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where built programs are kept: `$XDG_CACHE_HOME/lab/sandbox`, by default under ~/.cache."""
    base = environment.get("XDG_CACHE_HOME")
    return Path(base or Path.home() / ".cache") / "splitter" / "sandbox"


def module_sources(module: str = "controlplane") -> dict[str, bytes]:
    """Return a Go module's files by name, as they lie in the package."""
    folder = resources.files("lab.sandbox").joinpath(module)
    return {name: folder.joinpath(name).read_bytes() for name in SOURCES.get(module, _PINS)}


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
    return f"kubernetes-{kubernetes}-kwok-{kwok}-{system}-{digest(sources)}"


def digest(sources: Mapping[str, bytes]) -> str:
    """Return 16 hexadecimal digits that stand for these files."""
    made = hashlib.sha256()
    for name in sorted(sources):
        # The length keeps two files from being read as one another's beginning.
        made.update(f"{name} {len(sources[name])}\n".encode())
        made.update(sources[name])
    return made.hexdigest()[:16]


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
    go = compiling.GoOnDemand(sources["go.mod"].decode(), cache, progress)
    assets = environment.get("KUBEBUILDER_ASSETS")
    if assets:
        ready_made = _ready_made(Path(assets))
        home = cache / f"kwok-{KWOK_VERSION}-{SYSTEM}"
        compiling.once(home, progress, lambda into: _build_kwok(go, into, progress))
        return Programs(*(*ready_made, home / "kwok"))
    home = cache / build_key(sources, kubernetes=version)

    def build_both(into: Path) -> None:
        progress(
            f"building Kubernetes {version} and KWOK {KWOK_VERSION} once: about 6 minutes on 2 cores ..."
        )
        what = f"Kubernetes {version}"
        kubernetes(go, what, version, sources, into / "controlplane", progress=progress)
        for name in NAMES:
            (into / name).symlink_to("controlplane")
        _build_kwok(go, into, progress)

    compiling.once(home, progress, build_both)
    return Programs(*(home / name for name in (*NAMES, "kwok")))


def helm(progress: Callable[[str], None], environment: Mapping[str, str] = os.environ) -> Path:
    """Return Helm, building it when it is missing (3 minutes on 2 cores).

    Raises SandboxError as `programs` does.
    """
    cache = cache_directory(environment)
    go = compiling.GoOnDemand(_HELM_GO, cache, progress)
    home = cache / f"helm-{HELM_VERSION}-{SYSTEM}"

    def build_it(into: Path) -> None:
        progress(f"building Helm {HELM_VERSION} once: about 3 minutes on 2 cores ...")
        # Without the stamp it calls itself by the version of its next minor release.
        linker = f"-s -w -X {_HELM}/internal/version.version=v{HELM_VERSION}"
        package = f"{_HELM}/cmd/helm@v{HELM_VERSION}"
        compiling.install(go, f"Helm {HELM_VERSION}", package, into, progress=progress, linker=linker)

    compiling.once(home, progress, build_it)
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


def kubernetes(
    go: compiling.GoOnDemand,
    what: str,
    version: str,
    sources: Mapping[str, bytes],
    output: Path,
    *,
    progress: Callable[[str], None],
) -> None:
    """Build a module of ours that imports Kubernetes' commands into the program `output`.

    `what` names it in messages, as in "Kubernetes 1.36.3". Raises SandboxError when the build fails.
    """
    major, minor, _ = version.split(".")
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    # Without the stamps kubectl and the API server call themselves v0.0.0.
    linker = " ".join(["-s -w", *(f"-X {_STAMP}.{name}={value}" for name, value in stamps.items())])
    command = [go.command(), *_BUILD, linker, "-o", str(output), "."]
    with compiling.copied(sources) as module:
        if version != versions.PINNED:
            line = ".".join(map(str, toolchain.required_version(go.go_mod)))
            (module / "go.sum").unlink()
            text = versions.derived_go_mod(version, go.command(), f"go {line}", module)
            (module / "go.mod").write_text(text)
            command.insert(2, "-mod=mod")  # it completes both files
        compiling.run_go(what, command, progress, directory=module, logs=output.parents[1])


def _build_kwok(go: compiling.GoOnDemand, into: Path, progress: Callable[[str], None]) -> None:
    package = f"sigs.k8s.io/kwok/cmd/kwok@v{KWOK_VERSION}"
    compiling.install(go, f"KWOK {KWOK_VERSION}", package, into, progress=progress)
