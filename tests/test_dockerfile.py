"""The Dockerfile, as far as it can be judged without an engine: its rules, and its steps in a scratch folder.

What is not seen here: that the base image can be pulled, and that the second stage runs on it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = [
    line
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
DEADLINE_S = 600.0
TWINS = """
import json
import sys
from pathlib import Path
import yaml
from splitter.assembly import renderer_of
from splitter.core.labels_annotations.policy import Policy
from splitter.core.replica import Pool
from splitter.settings import Settings

documents = yaml.safe_load_all(Path(sys.argv[1]).read_text(encoding="utf-8"))
[source] = [one for one in documents if one["kind"] == "Deployment"]
source["metadata"]["namespace"] = "shop"
for pool in (Pool.ON_DEMAND, Pool.SPOT):
    rendered = renderer_of(Settings()).render(source, pool, Policy())
    print(json.loads(rendered.manifest_json)["metadata"]["name"])
"""
# What is installed is run a few times here: to compile all of it takes longer than that.
PIP = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_COMPILE": "0"}


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: its stage (from 0), its word and the rest of its line."""

    stage: int
    word: str
    rest: str

    @property
    def command(self) -> list[str]:
        """Return the words of an instruction in exec form."""
        words: list[str] = json.loads(self.rest)
        return words


def steps() -> list[Step]:
    """Return every instruction."""
    stage, collected = -1, []
    for line in TEXT.splitlines():
        if line and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            stage += word == "FROM"
            collected.append(Step(stage, word, rest))
    return collected


STEPS = steps()


def only(word: str, stage: int | None = None) -> list[Step]:
    """Return the instructions of one kind."""
    return [step for step in STEPS if step.word == word and stage in {None, step.stage}]


class TestRules:
    """What hadolint and the benchmarks of the field ask for."""

    def test_base(self) -> None:
        """Both stages have one base, slim, of a version that splitter supports; a label says which."""
        argument, repeated = only("ARG")
        match = re.fullmatch(r"PYTHON=3\.(\d+)-slim(@sha256:[0-9a-f]{64})?", argument.rest)
        assert match
        assert [step.rest for step in only("FROM")] == ["python:${PYTHON} AS build", "python:${PYTHON}"]
        assert (repeated.stage, repeated.rest) == (1, "PYTHON")
        assert (
            only("LABEL")[-1].rest
            == 'org.opencontainers.image.base.name="docker.io/library/python:${PYTHON}"'
        )
        oldest = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
        assert oldest
        assert int(match[1]) >= int(oldest[1])

    def test_no_shell(self) -> None:
        """Every command is in exec form: signals arrive, and nothing is expanded."""
        for step in (*only("RUN"), *only("ENTRYPOINT"), *only("CMD")):
            assert step.command

    def test_no_root(self) -> None:
        """The image runs as a number that is not root: only a number can be checked by runAsNonRoot."""
        [user] = only("USER")
        assert user.stage == 1
        assert user.rest == "65532:65532"
        deployment = (ROOT / "manifests/deployment.yaml").read_text(encoding="utf-8")
        assert re.findall(r"runAs(?:User|Group): (\d+)", deployment) == ["65532", "65532"]

    def test_every_package_is_locked(self) -> None:
        """Packages come as the locks name them, with hashes and nothing to build; or are our own."""
        installs = [step.command for step in only("RUN") if "install" in step.command]
        assert len(installs) == 3
        for command in installs:
            locked = {"--require-hashes", "--only-binary", "-r"} <= set(command)
            assert locked or {"--no-index", "--no-deps"} <= set(command)
            assert "--no-cache-dir" in command

    def test_nothing_to_build_with_is_left(self) -> None:
        """The second stage installs nothing, takes the environment only, and pip goes from the base."""
        [copy] = only("COPY", stage=1)
        assert copy.rest == "--from=build /opt/splitter /opt/splitter"
        [run] = only("RUN", stage=1)
        assert run.command[:4] == ["python", "-m", "pip", "uninstall"]
        assert "--without-pip" in next(step.command for step in only("RUN") if "venv" in step.command)

    def test_no_add(self) -> None:
        """Nothing is fetched from an address."""
        assert not only("ADD")
        assert "://" not in TEXT

    def test_copies_what_may_be_copied(self) -> None:
        """Each source is there, and .dockerignore lets it through; everything else stays outside."""
        assert "*" in IGNORED
        sources = {name for step in only("COPY", stage=0) for name in step.rest.split()[:-1]}
        assert sources == {name.removeprefix("!") for name in IGNORED if name.startswith("!")}
        assert all((ROOT / name).exists() for name in sources)


def left_out(folder: str, names: list[str]) -> set[str]:
    """Return what .dockerignore keeps from an engine, of the files and folders in one of the sources."""
    patterns = [one.removeprefix("**/") for one in IGNORED if one != "*" and not one.startswith("!")]
    within = Path(folder).relative_to(ROOT).as_posix()
    return {name for name in names if {name, f"{within}/{name}"} & set(patterns)}


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder that stands for the root of the first stage."""

    root: Path

    def place(self, word: str) -> str:
        """Return a word of a command with the image's paths and programs replaced by the folder's."""
        if word in {"python", "pip"}:
            return str(self.root / "base" / "bin" / word)
        return str(self.root / word[1:]) if word.startswith("/") else word

    def play(self, step: Step) -> None:
        """Do what an engine would do."""
        source = self.root / "src"
        if step.word == "COPY":
            *names, target = step.rest.split()
            for name in names:
                into = source / target / (name if target == "./" else "")
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, into, symlinks=True, ignore=left_out)
                else:
                    into.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, into)
        elif step.word == "RUN":
            run([self.place(word) for word in step.command], source)


def ran(command: list[str], where: Path) -> subprocess.CompletedProcess[str]:
    """Run a command far from the repository."""
    left = ("PYTHON", "SPLITTER_", "KUBECONFIG")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    return subprocess.run(
        command,
        cwd=where,
        env={**kept, "HOME": str(where), **PIP},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def run(command: list[str], where: Path) -> str:
    """Run a command that succeeds, and return what it printed."""
    ended = ran(command, where)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def failed(command: list[str], where: Path) -> str:
    """Run a command that a person has to correct, and return the complaint."""
    ended = ran(command, where)
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the environment that the first stage makes, and nothing else of that stage."""
    scratch = Scratch(tmp_path_factory.mktemp("image"))
    run([sys.executable, "-m", "venv", str(scratch.root / "base")], scratch.root)
    (scratch.root / "src").mkdir()
    for step in STEPS:
        if step.stage == 0:
            scratch.play(step)
    for name in ("src", "dist", "base"):
        shutil.rmtree(scratch.root / name)
    yield scratch.root / "opt" / "splitter"
    shutil.rmtree(scratch.root)


@pytest.mark.e2e
class TestSteps:
    """The steps of the first stage, played: what the image has."""

    def test_it_runs(self, image: Path, tmp_path: Path) -> None:
        """Both names of the command run outside the repository, and every dependency is there."""
        for name in ("splitter", "kubectl-splitter"):
            assert re.fullmatch(
                r"\S*\d+\.\d+\.\d+\n", run([str(image / "bin" / name), "--version"], tmp_path)
            )
        assert "Run the controller" in run([str(image / "bin/splitter"), "run", "--help"], tmp_path)
        assert not run([str(image / "bin/python"), "-c", "import splitter.estimator.server"], tmp_path)

    def test_its_files_travel_with_it(self, image: Path, tmp_path: Path) -> None:
        """Templates are found (twins are rendered), and so are manifests, chart and examples."""
        python = str(image / "bin/python")
        shown = "from splitter.bundled import bundled_path as b; print(b('examples/shop/web.yaml'))"
        web = run([python, "-c", shown], tmp_path).strip()
        assert str(image) in web
        assert run([python, "-c", TWINS, web], tmp_path).split() == ["web-on-demand", "web-spot"]
        manifests = Path(web).parents[2] / "manifests"
        wanted = {path.relative_to(ROOT) for path in (ROOT / "manifests").rglob("*.yaml")}
        assert wanted <= {
            Path("manifests") / path.relative_to(manifests) for path in manifests.rglob("*.yaml")
        }

    def test_the_plugin_is_not_in_it(self, image: Path, tmp_path: Path) -> None:
        """Neither its modules, its pages and its browser files, nor the packages that it alone needs."""
        [packages] = image.glob("lib/python*/site-packages")
        names = {path.name.split("-")[0].lower() for path in packages.iterdir()}
        assert not names & {"typer", "rich", "shellingham", "pygments", "markdown_it"}
        files = {
            path.relative_to(packages / "splitter").as_posix() for path in (packages / "splitter").rglob("*")
        }
        assert "operator.py" in files
        assert not [name for name in files if "plugin" in name or name.endswith((".html", ".js", ".css"))]
        complaint = failed([str(image / "bin/splitter"), "status", "-A"], tmp_path)
        assert complaint.startswith(
            "splitter: `status` needs the kubectl plugin, which is not installed here"
        )
        assert complaint.count("\n") == 1

    @pytest.mark.parametrize("words", [["run"], ["uninstall", "--all-namespaces", "--timeout", "9"]])
    def test_what_runs_in_it_needs_no_plugin(self, image: Path, tmp_path: Path, words: list[str]) -> None:
        """The controller, and what the Job of `helm uninstall` runs: here there is no cluster."""
        complaint = failed([str(image / "bin/splitter"), *words], tmp_path)
        assert complaint.startswith("splitter: ApiUnreachable: there are no credentials")

    def test_nothing_to_build_with_is_in_it(self, image: Path) -> None:
        """No pip, no build backend, no linter, no test runner."""
        [packages] = image.glob("lib/python*/site-packages")
        names = {path.name.split("-")[0].lower() for path in packages.iterdir()}
        assert not names & {"pip", "setuptools", "wheel", "hatchling", "pytest", "ruff", "mypy", "uv"}
