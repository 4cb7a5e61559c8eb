"""`python -m lab.sandbox` understands what a person asks for."""

import argparse
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest

from lab.sandbox import preflight
from lab.sandbox.__main__ import main, parse_nodes


class TestNodes:
    """--nodes POOL=COUNT,..."""

    def test_pools_and_counts(self) -> None:
        """Both pools, one, or none."""
        assert parse_nodes("on-demand=4,spot=8") == {"on-demand": 4, "spot": 8}
        assert parse_nodes("spot=1") == {"spot": 1}
        assert parse_nodes("") == {}

    @pytest.mark.parametrize("text", ["spots=3", "spot", "spot=many", "spot=-1"])
    def test_what_is_wrong_is_shown(self, text: str) -> None:
        """The error repeats the part that is wrong and shows the right form."""
        with pytest.raises(
            argparse.ArgumentTypeError, match=f"'{text}' is not POOL=COUNT; write for instance"
        ):
            parse_nodes(text)


class TestKubeconfig:
    """The option `--kubeconfig-out`."""

    def test_is_private_from_its_first_byte(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Another user who has opened a file of that name before reads nothing; it goes with the sandbox."""
        inner, out = tmp_path / "inner", tmp_path / "out"
        inner.write_text("token")
        out.touch(mode=0o644)
        seen: list[tuple[str, int]] = []

        def check() -> None:
            seen.append((out.read_text(), out.stat().st_mode & 0o777))
            raise KeyboardInterrupt

        sandbox = Mock(kubeconfig=inner, logs=tmp_path, check=check)
        monkeypatch.setattr("lab.sandbox.__main__.Sandbox.start", lambda **_: nullcontext(sandbox))
        monkeypatch.setattr("lab.sandbox.__main__.Provisioner", lambda _: nullcontext())
        with out.open() as opened_before:
            assert main(["--nodes", "", "--kubeconfig-out", str(out)]) == 0
            assert opened_before.read() == ""
        assert seen == [("token", 0o600)]
        assert not out.exists()
        assert capsys.readouterr().out == f"{out}\n"


class TestCheck:
    """`check` tells what there is on standard output, what is missing on standard error."""

    def test_all_is_well(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """Without problems the exit code is 0; --helm, --real-nodes and --at-once are handed on."""
        asked: list[tuple[bool, bool, int]] = []

        def well(*, helm: bool, real: bool, at_once: int) -> preflight.Report:
            asked.append((helm, real, at_once))
            return preflight.Report(["All is there."])

        monkeypatch.setattr(preflight, "check", well)
        assert main(["check"]) == 0
        assert main(["check", "--helm", "--at-once", "6"]) == 0
        assert main(["check", "--real-nodes"]) == 0
        assert asked == [(False, False, 1), (True, False, 6), (False, True, 1)]
        assert capsys.readouterr() == ("All is there.\n" * 3, "")

    def test_something_is_missing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Each problem is a line, and the exit code is 1."""
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
        monkeypatch.setenv("SPLITTER_KUBERNETES", "new")
        monkeypatch.setenv("GOPROXY", "off")
        monkeypatch.setenv("PIP_NO_INDEX", "1")
        assert main(["check"]) == 1
        reported = capsys.readouterr()
        assert reported.out.startswith("The programs of Kubernetes are taken from KUBEBUILDER_ASSETS")
        first, second, *_ = reported.err.splitlines()
        assert first.startswith("error: SPLITTER_KUBERNETES='new' is no version of Kubernetes.")
        assert second.startswith(f"error: {tmp_path} has no etcd, ")
