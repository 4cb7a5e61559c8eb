"""What the sandbox runs: each build's name, where it lies in the cache, and what building it takes.

`preflight` looks for it and says what is missing.
"""

from dataclasses import dataclass
from pathlib import Path

from lab.sandbox import build
from lab.sandbox.real import build as nodes


@dataclass(frozen=True, slots=True)
class Program:
    """One build in the cache: its name for people, where it lies, what is in it, and what building it takes.

    Sizes are in MiB: what du said after builds that began with empty Go caches, Kubernetes before Helm, and a
    tenth more. Go keeps each package in its temporary directory (`scratch`) until the end, beside its cache.
    """

    title: str
    home: Path
    files: tuple[str, ...]
    minutes: int
    size: int
    go_cache: int
    go_modules: int
    scratch: int


def wanted_programs(cache: Path, version: str, *, assets: bool, helm: bool, real: bool) -> list[Program]:
    """Return what is run: the control plane always, Helm and real nodes when asked for."""
    kwok = f"KWOK {build.KWOK_VERSION}"
    wanted = []
    if assets:  # the sizes are estimates
        home = cache / f"kwok-{build.KWOK_VERSION}-{build.SYSTEM}"
        wanted.append(Program(kwok, home, ("kwok",), 2, 100, 1000, 300, 1000))
    else:
        home = cache / build.build_key(build.module_sources(), kubernetes=version)
        files = (*build.NAMES, "kwok")
        wanted.append(Program(f"Kubernetes {version} and {kwok}", home, files, 6, 270, 4000, 900, 3500))
    if helm:
        home = cache / f"helm-{build.HELM_VERSION}-{build.SYSTEM}"
        wanted.append(Program(f"Helm {build.HELM_VERSION}", home, ("helm",), 3, 100, 1200, 600, 1200))
    if real:  # but for the size, estimates
        home = cache / nodes.key(version)
        wanted.append(Program("What real nodes run", home, nodes.PROGRAMS, 3, 200, 1500, 600, 1500))
    return wanted
