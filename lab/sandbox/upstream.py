"""Builds programs of other projects, which run beside splitter, from the versions that a module here pins.

A module is a folder of this package with a go.mod and a go.sum: it pins a project and all that it needs, and
the programs are the project's own. `controlplane` runs Karpenter and metrics-server, tests and benches run
the others. The cache, its keys and its lock are those of `build`.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.sandbox import compiling, toolchain
from lab.sandbox.build import SYSTEM, cache_directory, digest, module_sources
from lab.sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True)
class Project:
    """A published project: its name for people, its Go module and version, and what is taken from it.

    `folder` pins it. `programs`: the name of each program, and its package within the module. `kinds`: the
    files of its CustomResourceDefinitions, and of other manifests, within the module. `minutes`: how long a
    build takes on 2 idle cores. `linker`: further flags for Go's linker.
    """

    title: str
    folder: str
    module: str
    version: str
    programs: Mapping[str, str]
    kinds: tuple[str, ...] = ()
    minutes: int = 3
    linker: str = ""

    @property
    def key(self) -> str:
        """The name of the build, such as `karpenter-1.15.0-linux-x86_64-6cf0...`."""
        return f"{self.folder}-{self.version}-{SYSTEM}-{digest(module_sources(self.folder))}"


@dataclass(frozen=True, slots=True)
class Files:
    """Where the built programs lie, by name, and the manifests that came with them."""

    programs: Mapping[str, Path]
    kinds: tuple[Path, ...]

    @property
    def program(self) -> Path:
        """The only program of a project that has one."""
        [path] = self.programs.values()
        return path


_KARPENTER = "sigs.k8s.io/karpenter"
KARPENTER = Project(
    "Karpenter",
    "karpenter",
    _KARPENTER,
    "1.15.0",
    {"karpenter": "kwok"},
    # The kinds that its KWOK provider works with. It has more, behind feature gates.
    (
        "pkg/apis/crds/karpenter.sh_nodepools.yaml",
        "pkg/apis/crds/karpenter.sh_nodeclaims.yaml",
        "kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml",
    ),
    linker=f"-X {_KARPENTER}/pkg/operator.Version=1.15.0",
)
DESCHEDULER = Project(
    "descheduler",
    "descheduler",
    "sigs.k8s.io/descheduler",
    "0.36.0",
    {"descheduler": "cmd/descheduler"},
)
METRICS_SERVER = Project(
    "metrics-server",
    "metrics-server",
    "sigs.k8s.io/metrics-server",
    "0.8.0",
    {"metrics-server": "cmd/metrics-server"},
)
KEDA = Project(
    "KEDA",
    "keda",
    "github.com/kedacore/keda/v2",
    "2.20.2",
    {"keda": "cmd/operator", "keda-adapter": "cmd/adapter"},
    tuple(
        f"config/crd/bases/{name}.yaml"
        for name in (
            "eventing.keda.sh_cloudeventsources",
            "eventing.keda.sh_clustercloudeventsources",
            "keda.sh_clustertriggerauthentications",
            "keda.sh_scaledjobs",
            "keda.sh_scaledobjects",
            "keda.sh_triggerauthentications",
        )
    ),
    minutes=20,
)
VPA = Project(
    "VerticalPodAutoscaler",
    "vpa",
    "k8s.io/autoscaler/vertical-pod-autoscaler",
    "1.8.1",
    {
        "recommender": "pkg/recommender",
        "updater": "pkg/updater",
        "admission-controller": "pkg/admission-controller",
    },
    ("deploy/vpa-v1-crd-gen.yaml", "deploy/vpa-rbac.yaml"),
    minutes=5,
)
ALL = (KARPENTER, DESCHEDULER, METRICS_SERVER, KEDA, VPA)


def built(
    project: Project, progress: Callable[[str], None], environment: Mapping[str, str] = os.environ
) -> Files:
    """Return a project's programs and manifests, building them when they are missing.

    Raises SandboxError as `build.programs` does, and when the project's module cannot be had.
    """
    cache = cache_directory(environment)
    sources = module_sources(project.folder)
    go = compiling.GoOnDemand(sources["go.mod"].decode(), cache, progress)
    home = cache / project.key

    def build_it(into: Path) -> None:
        what = f"{project.title} {project.version}"
        progress(f"building {what} once: about {project.minutes} minutes on 2 cores ...")
        with compiling.copied(sources) as module:
            origin = _origin(project, go, module)
            packages = {name: f"{project.module}/{package}" for name, package in project.programs.items()}
            for name, package in packages.items():
                linker = f"-s -w {project.linker}".rstrip()
                command = [go.command(), "build", "-trimpath", "-ldflags", linker, "-o", str(into / name)]
                titled = what if len(packages) == 1 else f"{what} {name}"
                compiling.run_go(titled, [*command, package], progress, directory=module, logs=into.parent)
        # From the very module that was built, so the two cannot disagree.
        for path in project.kinds:
            shutil.copyfile(origin / path, into / Path(path).name)

    compiling.once(home, progress, build_it)
    return Files(
        {name: home / name for name in project.programs},
        tuple(home / Path(kind).name for kind in project.kinds),
    )


def _origin(project: Project, go: compiling.GoOnDemand, module: Path) -> Path:
    """Return the directory of the project's own module, having it downloaded when it is missing."""
    download = subprocess.run(
        [go.command(), "mod", "download", "-json", project.module],
        env=compiling.go_environment(),
        cwd=module,
        capture_output=True,
        text=True,
        check=False,
    )
    answer = json.loads(download.stdout or "{}")
    if "Dir" not in answer:
        why = toolchain.hide_hosts(answer.get("Error", "") or download.stderr.strip())
        raise SandboxError(
            f"{project.title} {project.version} cannot be built: its module {project.module} is not to be "
            f"had ({why[-300:]}). Look at the network, and at what `go env GOPROXY` says."
        )
    return Path(answer["Dir"])
