"""A build is whole or not there, and made once; what goes wrong is said with the compiler's words."""

import sys
import threading
from pathlib import Path

import pytest

from lab.sandbox import compiling
from lab.sandbox.compiling import copied, go_environment, once, run_go
from lab.sandbox.errors import SandboxError


class TestOnce:
    def test_is_made_where_it_is_not_there(self, tmp_path: Path) -> None:
        """In a folder of its own, which gets its name when it is whole."""
        home, built = tmp_path / "programs" / "v1", list[Path]()

        def build(partial: Path) -> None:
            assert not home.exists()
            built.append(partial)
            (partial / "etcd").touch()

        for _ in range(2):
            once(home, print, build)
        assert (home / "etcd").exists()
        assert len(built) == 1
        assert {one.name for one in home.parent.iterdir()} == {"v1", "build.lock"}

    def test_of_what_fails_nothing_is_left(self, tmp_path: Path) -> None:
        """The next try begins anew."""

        def fail(partial: Path) -> None:
            (partial / "half").touch()
            raise SandboxError("no room")

        with pytest.raises(SandboxError, match="no room"):
            once(tmp_path / "v1", print, fail)
        assert [one.name for one in tmp_path.iterdir()] == ["build.lock"]

    def test_is_waited_for_where_somebody_else_makes_it(self, tmp_path: Path) -> None:
        """Two at a time would fill the machine; the second one finds it."""
        home, said, built = tmp_path / "v1", list[str](), list[Path]()
        begun, waits = threading.Event(), threading.Event()

        def slow(partial: Path) -> None:
            built.append(partial)
            begun.set()
            assert waits.wait(30)

        first = threading.Thread(target=once, args=(home, print, slow))
        first.start()
        assert begun.wait(30)

        def tell(text: str) -> None:
            said.append(text)
            waits.set()

        once(home, tell, built.append)
        first.join()
        assert said == ["another process is building programs of the sandbox; waiting for it ..."]
        assert len(built) == 1


class TestRun:
    def run(self, folder: Path, program: str, said: list[str]) -> None:
        """Run a program in Go's place."""
        run_go("Etcd server", [sys.executable, "-c", program], said.append, directory=folder, logs=folder)

    def test_tells_that_it_has_built(self, tmp_path: Path) -> None:
        """The log of an earlier build is gone."""
        log, said = tmp_path / "etcd-server-build.log", list[str]()
        log.write_text("earlier")
        self.run(tmp_path, "print('compiled')", said)
        assert log.read_text() == "compiled\n"
        assert said[-1].startswith("built Etcd server in ")

    def test_tells_that_it_still_builds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Somebody waits in front of it."""
        monkeypatch.setattr(compiling, "_REPORT_EVERY_S", 0.01)
        said = list[str]()
        self.run(tmp_path, "import time; time.sleep(0.2)", said)
        assert said[0].startswith("still building Etcd server: ")

    def test_a_failure_has_the_compilers_last_words(self, tmp_path: Path) -> None:
        """And where the whole log is; no host of a proxy is in it."""
        with pytest.raises(SandboxError) as caught:
            self.run(tmp_path, "print('get https://proxy.example/x'); raise SystemExit('undefined: x')", [])
        said = str(caught.value)
        assert "building Etcd server failed: `go -c` ended with code 1" in said
        assert said.endswith("undefined: x")
        assert "proxy.example" not in said


def test_the_environment_builds_the_same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a person has set."""
    monkeypatch.setenv("CGO_ENABLED", "1")
    monkeypatch.setenv("GOFLAGS", "-p=1")
    made = go_environment({"GOBIN": "/bin"})
    assert (made["CGO_ENABLED"], made["GOWORK"], made["GOTOOLCHAIN"]) == ("0", "off", "local")
    assert (made["GOFLAGS"], made["GOBIN"]) == ("-p=1", "/bin")


def test_a_module_is_copied_for_as_long_as_it_builds() -> None:
    """Go writes beside it, and the package may be read-only."""
    with copied({"go.mod": b"module x\n"}) as folder:
        assert (folder / "go.mod").read_bytes() == b"module x\n"
    assert not folder.exists()
