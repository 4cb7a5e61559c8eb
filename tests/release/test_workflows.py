import json
import os
import re
import subprocess
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

    @pytest.mark.parametrize(
        ("given", "is_fault"),
        [
            ("", True),
            ("path: .", True),
            ("path: ${{ runner.temp }}/x", False),
            ("path: ${{ runner.temp }}", True),
        ],
    )
    def test_find_what_writes_into_a_checkout(self, given: str, is_fault: bool) -> None:
        """A file of an artifact may be a hook of git's, which the next commit runs."""
        step = f"      - uses: actions/download-artifact@{SHA} # v1.2.3\n        with:\n          name: x\n"
        text = GOOD + step + (f"          {given}\n" if given else "")
        assert faults(text) == []
        checkout = text.replace("uses: a/b@", "uses: actions/checkout@")
        assert bool(faults(checkout)) is is_fault


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
        assert {"test", "scan"} <= set(jobs["image"]["needs"])
        assert "image" in jobs["publish"]["needs"]
        signing = {name for name, job in jobs.items() if "id-token" in job["permissions"]}
        assert signing == {"image", "publish"}
        elsewhere = [name for name, text in TEXTS.items() if "id-token" in text]
        assert elsewhere == ["release.yaml"]

    @pytest.mark.parametrize(("name", "job"), [("release.yaml", "scan"), ("scan.yaml", "image")])
    def test_scan_the_image(self, name: str, job: str) -> None:
        """A job that may write nothing builds it on a base with a digest, and judges what is found."""
        scanning = yaml.safe_load(TEXTS[name])["jobs"][job]
        assert scanning["permissions"] == {"contents": "read"}
        commands = "\n".join(step.get("run", "") for step in scanning["steps"])
        assert commands.index(".ci/base ") < commands.index("docker build --build-arg PYTHON=")
        assert commands.endswith(" -m release scan image.json")
        [scanner] = [step for step in scanning["steps"] if "osv-scanner" in step.get("uses", "")]
        asked = "scan image --archive --format=json --output-file=image.json image.tar"
        assert scanner["with"]["scan-args"].split() == asked.split()

    def test_release_what_was_scanned(self) -> None:
        """The image that is pushed has the base of the one that was scanned, by its digest."""
        jobs = yaml.safe_load(TEXTS["release.yaml"])["jobs"]
        [push] = [step["with"] for step in jobs["image"]["steps"] if step.get("id") == "push"]
        assert push["build-args"] == "PYTHON=${{ needs.scan.outputs.base }}"

    def test_what_may_write_takes_three_files_by_name(self) -> None:
        """Whatever the job made that has read new packages; and making locks runs none of their code."""
        jobs = yaml.safe_load(TEXTS["dependencies.yaml"])["jobs"]
        assert jobs["lock"]["permissions"] == {"contents": "read"}
        [take] = [step["run"] for step in jobs["propose"]["steps"] if "cp " in step.get("run", "")]
        [named] = re.findall(r"^for lock in (.*); do$", take, re.MULTILINE)
        assert sorted(named.split()) == sorted(path.name for path in ROOT.glob("*.lock"))
        assert '[ ! -L "$RUNNER_TEMP/locks/$lock" ]' in take
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        [flags] = re.findall(r"^LOCK_FLAGS := (.*)$", makefile, re.MULTILINE)
        compiling = [line for line in makefile.splitlines() if "uv pip compile" in line]
        assert "--no-build" in flags.split()
        assert len(compiling) == 3
        assert all("$(LOCK_FLAGS)" in line for line in compiling)

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
        """For actions, which are pinned. It cannot read a base that is an argument."""
        result = yaml.safe_load((ROOT / ".github/dependabot.yml").read_text(encoding="utf-8"))
        assert result["version"] == 2
        asked = {one["package-ecosystem"]: one["schedule"]["interval"] for one in result["updates"]}
        assert asked == {"github-actions": "weekly"}
        assert ".ci/base Dockerfile --newest" in TEXTS["dependencies.yaml"]


class TestBase:
    """`.ci/base`: the base of the image, by its digest."""

    TAG = "3.13-slim"
    THERE, NEWEST = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"

    def base(self, folder: Path, argument: str, *options: str, digest: str = NEWEST) -> tuple[int, str]:
        """Return exit code and output, beside a registry in which the tag has a digest."""
        manifest = json.dumps({"digest": digest, "manifests": [{"digest": "sha256:of-a-platform"}]})
        docker = folder / "docker"
        docker.write_text(f"""#!/bin/sh\n[ "$4" = python:{self.TAG} ] && echo '{manifest}'\n""")
        docker.chmod(0o755)
        (folder / "Dockerfile").write_text(f"# text\nARG PYTHON={argument}\nFROM python:${{PYTHON}}\n")
        done = subprocess.run(
            [ROOT / ".ci/base", folder / "Dockerfile", *options],
            env={"PATH": f"{folder}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout.strip()

    def test_is_the_one_that_is_written(self, tmp_path: Path) -> None:
        """The registry is not asked, except for the newest."""
        pinned = f"{self.TAG}@{self.THERE}"
        assert self.base(tmp_path, pinned) == (0, pinned)
        assert self.base(tmp_path, pinned, "--newest") == (0, f"{self.TAG}@{self.NEWEST}")

    def test_is_that_of_the_tag_otherwise(self, tmp_path: Path) -> None:
        """Of all platforms together."""
        assert self.base(tmp_path, self.TAG) == (0, f"{self.TAG}@{self.NEWEST}")

    @pytest.mark.parametrize("argument", ["3.14-slim", "", f"3.13@{THERE}", "3.13-slim@sha256:a"])
    def test_is_never_without_a_digest(self, tmp_path: Path, argument: str) -> None:
        """An unknown tag, and what is no base, end the job."""
        code, printed = self.base(tmp_path, argument)
        assert code != 0
        assert printed == ""

    def test_is_not_what_a_registry_makes_up(self, tmp_path: Path) -> None:
        """Its answer becomes part of a command and of a file."""
        assert self.base(tmp_path, self.TAG, digest="sha256:a/ x\nb") == (1, "")
