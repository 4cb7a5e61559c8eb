"""What is built, when, and where it is kept."""

import os
import re
from pathlib import Path

import pytest

from lab.sandbox import SandboxError, build, upstream, versions
from lab.sandbox.build import (
    NAMES,
    build_key,
    cache_directory,
    module_sources,
    programs,
)
from lab.sandbox.upstream import Project, built

SOURCES = {"go.mod": b"module m\n\ngo 1.26.0\n", "go.sum": b"", "main.go": b"package main\n"}


def unwanted(line: str) -> None:
    """Stand for progress that must not be told."""
    raise AssertionError(line)


class TestTheKey:
    """The same inputs give the same build, any other input another one."""

    def test_is_stable(self) -> None:
        """A second clone finds the first one's build."""
        assert build_key(SOURCES) == build_key(dict(reversed(SOURCES.items())))

    @pytest.mark.parametrize("name", list(SOURCES))
    def test_changes_with_each_file(self, name: str) -> None:
        """A changed file of the module builds anew."""
        assert build_key(SOURCES | {name: SOURCES[name] + b"\n"}) != build_key(SOURCES)

    def test_tells_files_apart(self) -> None:
        """Moving a line from the end of one file to the start of the next is a change."""
        moved = SOURCES | {"go.sum": b"module", "go.mod": SOURCES["go.mod"].removeprefix(b"module")}
        assert build_key(moved) != build_key(SOURCES)

    def test_names_versions_and_platform(self) -> None:
        """A person can see in the cache directory what is what."""
        key = build_key(SOURCES, kubernetes="1.99.0", kwok="0.1.0", system="linux-x86_64")
        assert key.startswith("kubernetes-1.99.0-kwok-0.1.0-linux-x86_64-")

    def test_the_module_is_part_of_the_package(self) -> None:
        """The Go module's files are found as package data."""
        assert set(module_sources()) == {"go.mod", "go.sum", "main.go"}

    @pytest.mark.parametrize("project", upstream.ALL, ids=lambda project: project.folder)
    def test_a_project_is_the_one_that_its_module_pins(self, project: Project) -> None:
        """The version in the name of the build is the version that is built, and all programs are its own."""
        text = module_sources(project.folder)["go.mod"].decode()
        assert f"{project.module} v{project.version} " in text
        assert project.key.startswith(f"{project.folder}-{project.version}-")
        tools = re.findall(rf"^(?:tool |\t){re.escape(project.module)}/(\S+)$", text, re.MULTILINE)
        assert sorted(tools) == sorted(project.programs.values())


class TestTheCache:
    """Built once, kept in the user's cache directory."""

    def test_follows_xdg(self, tmp_path: Path) -> None:
        """XDG_CACHE_HOME is respected."""
        assert cache_directory({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "splitter" / "sandbox"

    def test_defaults_to_the_home_directory(self) -> None:
        """Without XDG_CACHE_HOME it is ~/.cache."""
        assert cache_directory({}) == Path.home() / ".cache" / "splitter" / "sandbox"

    def test_what_is_there_is_not_built(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A second start needs no Go, no lock and no progress line."""
        monkeypatch.setenv("PATH", "/nonexistent")
        home = tmp_path / "splitter" / "sandbox" / build_key(module_sources())
        home.mkdir(parents=True)
        result = programs(unwanted, {"XDG_CACHE_HOME": str(tmp_path)})
        assert result.etcd == home / "etcd"
        assert result.kwok == home / "kwok"

    def test_a_project_is_kept_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It has a directory of its own, and its kinds lie beside its programs."""
        monkeypatch.setenv("PATH", "/nonexistent")
        home = tmp_path / "splitter" / "sandbox" / upstream.KEDA.key
        home.mkdir(parents=True)
        result = built(upstream.KEDA, unwanted, {"XDG_CACHE_HOME": str(tmp_path)})
        assert result.programs == {"keda": home / "keda", "keda-adapter": home / "keda-adapter"}
        assert {kind.parent for kind in result.kinds} == {home}

    def test_a_module_that_is_not_to_be_had_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One sentence says which project, why, and where to look; hosts are not in it."""
        go = tmp_path / "bin" / "go"
        go.parent.mkdir()
        go.write_text(
            '#!/bin/sh\n[ "$1" = env ] && { echo go1.26.8; exit; }\n'
            'echo \'{"Error": "reading https://proxy.corp/x: 403 Forbidden"}\'; exit 1\n'
        )
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
        with pytest.raises(SandboxError, match=r"KEDA [\d.]+ cannot be built: its module") as caught:
            built(upstream.KEDA, print, {"XDG_CACHE_HOME": str(tmp_path)})
        assert "reading https://(host)/x: 403 Forbidden" in str(caught.value)
        assert [path.name for path in (tmp_path / "splitter" / "sandbox").iterdir()] == ["build.lock"]

    def test_a_failed_build_leaves_nothing_and_says_why(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The compiler's last words and the log's path are in the error; no half result is kept."""
        go = tmp_path / "bin" / "go"
        go.parent.mkdir()
        go.write_text(
            '#!/bin/sh\n[ "$1" = env ] && { echo go1.26.8; exit; }\n'
            "echo 'main.go:1: Get \"https://proxy.corp/x\": broken'; exit 1\n"
        )
        go.chmod(0o755)
        monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
        reported: list[str] = []
        with pytest.raises(SandboxError, match=r"ended with code 1(.|\n)*the whole log is") as caught:
            programs(reported.append, {"XDG_CACHE_HOME": str(tmp_path)})
        assert 'Get "https://(host)/x": broken' in str(caught.value)
        assert "about 6 minutes" in reported[0]
        left = {path.name for path in (tmp_path / "splitter" / "sandbox").iterdir()}
        assert left == {"build.lock", f"kubernetes-{versions.PINNED}-build.log"}


class TestReadyMadePrograms:
    """KUBEBUILDER_ASSETS replaces the Kubernetes build."""

    def test_are_taken(self, tmp_path: Path) -> None:
        """With all five programs there, only KWOK comes from the cache."""
        assets = tmp_path / "assets"
        assets.mkdir()
        for name in NAMES:
            (assets / name).touch(mode=0o755)
        system = f"{os.uname().sysname}-{os.uname().machine}".lower()
        kwok = tmp_path / "splitter" / "sandbox" / f"kwok-{build.KWOK_VERSION}-{system}"
        kwok.mkdir(parents=True)
        environment = {"KUBEBUILDER_ASSETS": str(assets), "XDG_CACHE_HOME": str(tmp_path)}
        result = programs(unwanted, environment)
        assert result.kube_scheduler == assets / "kube-scheduler"
        assert result.kwok == kwok / "kwok"

    def test_missing_ones_are_named(self, tmp_path: Path) -> None:
        """Envtest's own bundle has no controller manager and no scheduler; the error says so."""
        for name in ("etcd", "kube-apiserver", "kubectl"):
            (tmp_path / name).touch(mode=0o755)
        with pytest.raises(SandboxError, match="has no kube-controller-manager, kube-scheduler"):
            programs(unwanted, {"KUBEBUILDER_ASSETS": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
