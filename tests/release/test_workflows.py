import re
from pathlib import Path

import pytest
import yaml

from release.scratch import ROOT
from release.workflows import faults, pins, triggers

FOLDER = ROOT / ".github/workflows"
FILES = sorted(FOLDER.iterdir())
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in FILES}
RIGHTS = "    permissions:\n      contents: read\n"
SHA = "0123456789" * 4
GOOD = f"""\
on: [push]
permissions: {{}}
jobs:
  one:
    runs-on: x
    timeout-minutes: 5
    permissions:
      contents: read
    steps:
      - uses: a/b@{SHA} # v1.2.3
      - run: echo "$NAME"
        env:
          NAME: ${{{{ github.event.issue.title }}}}
          TOKEN: ${{{{ secrets.GITHUB_TOKEN }}}}
"""


class TestRules:
    """The rules find what they are there to find."""

    def test_let_a_good_one_pass(self) -> None:
        """Text of strangers in the environment is data."""
        assert faults(GOOD) == []

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ("permissions: {}\n", "", "the workflow has rights by default"),
            ("permissions: {}\n", "permissions: write-all\n", "the workflow has rights by default"),
            (RIGHTS, "", "one does not list its permissions"),
            (RIGHTS, "    permissions: write-all\n", "one does not list its"),
            ("    timeout-minutes: 5\n", "", "one has no timeout-minutes up to 120"),
            ("timeout-minutes: 5", "timeout-minutes: 360", "one has no timeout-minutes up to 120"),
            ("[push]", "[push, pull_request_target]", "pull_request_target starts it"),
            ("[push]", "pull_request_target", "pull_request_target starts it"),
            ("[push]", "\n  workflow_run:\n    workflows: [x]", "workflow_run starts it"),
            ("secrets.GITHUB_TOKEN", "secrets.TOKEN", "it reads a secret other than GITHUB_TOKEN"),
            ("secrets.GITHUB_TOKEN", "secrets.GITHUB_TOKEN_2", "it reads a secret other than GITHUB_TOKEN"),
            ("secrets.GITHUB_TOKEN", "toJSON(secrets)", "it reads a secret other than GITHUB_TOKEN"),
            ("secrets.GITHUB_TOKEN", "secrets['X']", "it reads a secret other than GITHUB_TOKEN"),
            ("    runs-on: x\n", "    secrets: inherit\n", "one hands secrets on"),
            ('"$NAME"', '"${{ github.event.issue.title }}"', "one has an expression in a command"),
            (f"@{SHA}", "@v1", "a/b@v1 is not pinned by its commit"),
            (" # v1.2.3", "", f"a/b@{SHA} does not say its version"),
            ("uses: a/b@", "uses: actions/github-script@", "one has a script in a string"),
        ],
    )  # fmt: skip
    def test_find_a_fault(self, old: str, new: str, said: str) -> None:
        """One change, one sentence."""
        assert GOOD.count(old) == 1
        [fault] = faults(GOOD.replace(old, new))
        assert fault.startswith(said)

    def test_find_a_writer_for_pull_requests(self) -> None:
        """What a stranger proposes is tested by a job that can change nothing."""
        proposed = GOOD.replace("[push]", "[push, pull_request]")
        assert faults(proposed) == []
        assert faults(proposed.replace("contents: read", "contents: write")) == [
            "one may write for a pull request"
        ]


class TestWorkflows:
    @pytest.mark.parametrize("name", TEXTS)
    def test_break_no_rule(self, name: str) -> None:
        """Each job lists its rights and its time, reads no secret and quotes nobody in a shell."""
        assert faults(TEXTS[name]) == []

    def test_are_the_ones_there_should_be(self) -> None:
        """Tests on each change, a release on a tag, locks and a scan each week."""
        by_name = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
        assert {name: triggers(workflow) for name, workflow in by_name.items()} == {
            "test.yaml": {"push", "pull_request", "workflow_dispatch"},
            "release.yaml": {"push"},
            "dependencies.yaml": {"schedule", "workflow_dispatch"},
            "scan.yaml": {"schedule", "push", "pull_request", "workflow_dispatch"},
        }
        assert list(by_name["release.yaml"][True]["push"]) == ["tags"]
        for name in ("dependencies.yaml", "scan.yaml"):
            [plan] = by_name[name][True]["schedule"]
            assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", plan["cron"]), name

    def test_pin_each_action_once(self) -> None:
        """An action has one commit in all of them: none is forgotten when it is upgraded."""
        result = pins(TEXTS)
        assert len(result) > 8
        assert {action: commits for action, commits in result.items() if len(commits) > 1} == {}

    def test_publish_what_was_tested(self) -> None:
        """Nothing is pushed before all tests have passed, and only what publishes may sign."""
        jobs = yaml.safe_load(TEXTS["release.yaml"])["jobs"]
        assert any(step.get("run") == ".ci/run" for step in jobs["test"]["steps"])
        assert "test" in jobs["image"]["needs"]
        assert "image" in jobs["publish"]["needs"]
        signing = {name for name, job in jobs.items() if "id-token" in job["permissions"]}
        assert signing == {"image", "publish"}
        elsewhere = [name for name, text in TEXTS.items() if "id-token" in text]
        assert elsewhere == ["release.yaml"]

    def test_ask_for_targets_that_are_there(self) -> None:
        """What a workflow makes is in the Makefile."""
        targets = set(
            re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        )
        asked = {name for text in TEXTS.values() for name in re.findall(r"\bmake ([a-z0-9-]+)", text)}
        assert {"dist", "lock", "venv"} <= asked
        assert asked <= targets
        assert Path(ROOT / ".ci/run").stat().st_mode & 0o111


class TestDependabot:
    def test_looks_each_week(self) -> None:
        """For actions, which are pinned, and for the base of the image."""
        result = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))
        assert result["version"] == 2
        asked = {one["package-ecosystem"]: one["schedule"]["interval"] for one in result["updates"]}
        assert asked == {"github-actions": "weekly", "docker": "weekly"}
