"""The demo's options, and its verb."""

import pytest
from typer.testing import CliRunner

from lab.demo import DemoOptions
from lab.demo.__main__ import app
from splitter.settings.loading import load_settings


class TestOptions:
    """What is shortened is said, and is a setting that splitter knows."""

    def test_settings_are_settings(self) -> None:
        """`splitter run` starts with them."""
        settings = load_settings(environment=DemoOptions(soak_s=7).settings)
        assert (settings.soak_s, settings.http_port, settings.metrics_port) == (7, 0, 0)

    @pytest.mark.parametrize(("notice_s", "useful"), [(0, False), (5, False), (10, True)])
    def test_a_short_notice_promises_nothing(self, notice_s: float, useful: bool) -> None:
        """Pods of the sandbox take 2 to 4 s to become ready."""
        assert DemoOptions(notice_s=notice_s).notice_is_useful is useful


class TestCommandLine:
    """What cannot be done is refused before anything starts."""

    def test_a_cluster_of_the_users_is_refused(self) -> None:
        """The demo takes nodes away."""
        answer = CliRunner().invoke(app, ["--kubeconfig", "mine"])
        assert answer.exit_code == 2
        assert "sandbox of its own" in answer.output
