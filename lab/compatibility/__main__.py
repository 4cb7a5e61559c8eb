"""`make compatibility`: the tests with each Kubernetes and each Python that are promised.

Each Kubernetes is built from its modules (once, 6 minutes on 2 cores) and gets end-to-end tests; each Python
gets an environment with the locked packages, and unit tests. What was found goes to
benchmarks/compatibility.json, and from there into the docs: also which Python is not on this machine. Exit
code 1 when a test failed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET

from lab.checkout import ROOT
from lab.compatibility.results import FILE, KUBERNETES, PYTHON, Run, load, save
from lab.sandbox.build import cache_directory
from lab.sandbox.versions import VARIABLE

E2E = (
    "tests/e2e/test_life.py",
    "tests/e2e/test_related_objects.py",
    "tests/e2e/test_statefulset.py",
    "tests/e2e/test_placed.py",
    "tests/e2e/test_old_kubernetes.py",
    "tests/e2e/test_own_account.py",
    "tests/e2e/test_annotation_policies.py",
    "tests/e2e/test_rights.py",
)
UNIT = ("tests/core", "tests/kube", "tests/reconciler", "tests/settings", "tests/test_start.py")
_UNIT_MARKERS = "not e2e and not bench and not karpenter and not karmada and not beside and not campaign"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for and return the exit code."""
    chosen = _parser().parse_args(arguments)
    only = bool(chosen.kubernetes or chosen.python)
    results: list[Run] = []
    for version in chosen.kubernetes or (() if only else KUBERNETES):
        run = _on_kubernetes(version, everything=chosen.all)
        results.append(_kept(f"Kubernetes {version.rpartition('.')[0]}", run))
    minors = chosen.python or (() if only else PYTHON)
    results += [_kept(f"Python {minor}", _on_python(minor, everything=chosen.all)) for minor in minors]
    return 1 if any(run.failed for run in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make compatibility", description=__doc__)
    parser.add_argument("--all", action="store_true", help="the whole suite with each of them (hours)")
    parser.add_argument("--kubernetes", nargs="*", metavar="1.33.13", help="these only")
    parser.add_argument("--python", nargs="*", metavar="3.12", choices=PYTHON, help="these only")
    return parser


def _kept(what: str, run: Run) -> Run:
    """Write down what was found, beside what others have meanwhile."""
    save({**load(), what: run})
    sys.stdout.write(f"{run.row(what)}\n")
    sys.stdout.flush()
    return run


def _on_kubernetes(version: str, *, everything: bool) -> Run:
    tests = ("tests/e2e",) if everything else E2E
    command = [sys.executable, "-m", "pytest", "-m", "e2e", *tests]
    return _ran(command, version, {VARIABLE: version}, everything=everything)


def _on_python(minor: str, *, everything: bool) -> Run:
    python = next(_interpreters(minor), None)
    if python is None:
        return Run()
    home = cache_directory().parent / "compatibility" / f"python-{minor}"
    own = home / "bin" / "python"
    lock = ROOT / "requirements-dev.lock"
    made = home / lock.name
    if not made.exists() or made.read_bytes() != lock.read_bytes():
        subprocess.run([str(python), "-m", "venv", "--clear", str(home)], check=True)
        pip = [str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--require-hashes", "--only-binary", ":all:", "-r", str(lock)], check=True)
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
        shutil.copyfile(lock, made)
    asked = "import platform; print(platform.python_version())"
    version = subprocess.run(
        [str(own), "-c", asked], capture_output=True, text=True, check=True
    ).stdout.strip()
    tests = () if everything else UNIT
    command = [str(own), "-m", "pytest", "-p", "no:cacheprovider", "-n", "2", "-m", _UNIT_MARKERS, *tests]
    return _ran(command, version, {}, everything=everything)


def _interpreters(minor: str) -> Iterator[Path]:
    """Yield what looks like this Python and runs: on PATH, then what pyenv has built, the newest first."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    built = sorted(pyenv.glob(f"{minor}.*"), key=lambda one: int(one.name.rpartition(".")[2]), reverse=True)
    on_path = shutil.which(f"python{minor}")
    for python in (*([Path(on_path)] if on_path else ()), *(one / "bin" / "python" for one in built)):
        asked = "import sys; print('%d.%d' % sys.version_info[:2])"
        answer = subprocess.run([str(python), "-c", asked], capture_output=True, text=True, check=False)
        if answer.stdout.strip() == minor:
            yield python


def _ran(command: list[str], version: str, environment: dict[str, str], *, everything: bool) -> Run:
    """Run pytest and count what it says in its report. Raises SystemExit when it ran no test at all."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment}
        ended = subprocess.run(
            [*command, "-q", "-o", "junit_family=xunit1", f"--junitxml={report}"],
            cwd=ROOT,
            env=variables,
            check=False,
        )
        if not report.exists():
            raise SystemExit(f"pytest ended with {ended.returncode} and no report; {FILE.name} is as it was")
        return counted(report.read_text(encoding="utf-8"), version, "all" if everything else "selected")


def counted(report: str, version: str, tests: str) -> Run:
    """Return what a report of pytest's in the form of JUnit says. Raises SystemExit when no test ran."""
    suites = ET.fromstring(report).iter("testsuite")  # noqa: S314 (pytest has just written it)
    results = [
        {name: int(one.get(name, "0")) for name in ("tests", "failures", "errors", "skipped")}
        for one in suites
    ]
    ran, failures, errors, skipped = (
        sum(one[name] for one in results) for name in ("tests", "failures", "errors", "skipped")
    )
    if ran - skipped <= 0:
        raise SystemExit(f"no test ran with {version}")
    failed = failures + errors
    today = datetime.now(UTC).date().isoformat()
    return Run(version, tests, today, passed=ran - skipped - failed, skipped=skipped, failed=failed)


if __name__ == "__main__":
    sys.exit(main())
