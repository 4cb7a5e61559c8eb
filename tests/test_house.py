"""The rules of the house (CONTRIBUTING.md) that no linter checks."""

import ast
import doctest
import importlib
import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from splitter.bundled import bundled_path
from splitter.core.reasons import Reason
from wrapped import too_long, wrapped

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 400  # what one can hold in mind; splitting a longer module makes both halves clearer
MAX_TEST_LINES = 800  # a table of cases is searched rather than held in mind
FORBIDDEN_NAMES = {"utils", "helpers", "common"}  # they say nothing about what is inside
# kopf's index is quadratic; the others put finalizers or annotations on users' objects.
FORBIDDEN_KOPF = {"index", "timer", "daemon", "create", "update", "delete", "field", "resume"}


def modules(folder: str) -> list[Path]:
    """List the Python files of a folder of the repository."""
    return sorted((ROOT / folder).rglob("*.py"))


def name(path: Path) -> str:
    """Say where a file is, from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


class Names(NamedTuple):
    """What a module mentions."""

    attributes: frozenset[str]
    imports: frozenset[str]
    identifiers: frozenset[str]
    documented: bool


def spelled(node: ast.expr) -> str:
    """Return a dotted name as it is written; after anything else than names it begins with a dot."""
    match node:
        case ast.Attribute(value=value, attr=word):
            return f"{spelled(value)}.{word}"
        case ast.Name(id=word):
            return word
        case _:
            return ""


@cache
def names_in(path: Path) -> Names:
    """Read a module once for all rules that look at it."""
    dotted, imported, used = set[str](), set[str](), set[str]()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                imported |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), names=aliases):
                imported |= {module, *(f"{module}.{alias.name}" for alias in aliases)}
            case ast.Attribute(attr=word):
                dotted.add(spelled(node))
                used.add(word)
            case ast.Name(id=word) | ast.arg(arg=word):
                used.add(word)
            case ast.FunctionDef(name=word) | ast.AsyncFunctionDef(name=word) | ast.ClassDef(name=word):
                used.add(word)
            case ast.keyword(arg=str(word)) | ast.alias(asname=str(word)):
                used.add(word)
            case _:
                pass
    return Names(frozenset(dotted), frozenset(imported), frozenset(used), bool(ast.get_docstring(tree)))


def attributes(path: Path) -> frozenset[str]:
    """Return every dotted name that a module mentions, such as `kopf.on.event`."""
    return names_in(path).attributes


def imports(path: Path) -> frozenset[str]:
    """Return every module, and every name in a module, that a module imports."""
    return names_in(path).imports


def identifiers(path: Path) -> frozenset[str]:
    """Return every name that a module gives or uses."""
    return names_in(path).identifiers


def options(command: str) -> set[str]:
    """Return the options of a command, without their values."""
    return {word.partition("=")[0] for word in command.split() if word.startswith("--")}


class TestModules:
    """A module is small, has a name that says what is inside, and tells its journey."""

    @pytest.mark.parametrize(
        ("folder", "limit"),
        [
            ("splitter", MAX_LINES),
            ("lab/sandbox", MAX_LINES),
            ("lab", MAX_TEST_LINES),
            ("tests", MAX_TEST_LINES),
        ],
    )
    def test_is_short_enough(self, folder: str, limit: int) -> None:
        """No module is longer than what one can hold in mind."""
        lines = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules(folder)}
        longer = {module: count for module, count in lines.items() if count > limit}
        assert lines
        assert not longer, f"split them by what they decide: {longer}"

    def test_has_a_telling_name(self) -> None:
        """No module is called utils, helpers or common."""
        collected = [
            name(path)
            for path in (*modules("splitter"), *modules("lab"), *modules("tests"))
            if path.stem in FORBIDDEN_NAMES
        ]
        assert not collected

    def test_tells_its_journey(self) -> None:
        """Every module says what it is for."""
        assert not [
            name(path) for path in (*modules("splitter"), *modules("lab")) if not names_in(path).documented
        ]


class TestWords:
    """Code and docs use the words that Kubernetes engineers use (docs/adr/0046), and not those of before."""

    # A private word of earlier versions, and what stands for it now.
    PRIVATE: Mapping[str, str] = {
        "bodies": "payloads",
        "doorway": "operator",
        "fight": "write_conflict",
        "fighter": "conflicting_writer",
        "fights": "write_conflicts",
        "found": "the name of the thing",
        "giving": "offboard",
        "heard": "external_signals",
        "herald": "EventRecorder",
        "holdroom": "CreatePlaceholder",
        "in_place": "placement.table",
        "inspection": "template_validation",
        "is_news": "needs_reconcile",
        "letroomgo": "DeletePlaceholder",
        "mark": "OwnershipMark",
        "neighbours": "related",
        "news": "predicates",
        "pass": "reconcile",
        "passes": "reconciles",
        "placing": "scheduling, placement_writer",
        "probe": "capacity_probe, health_checks",
        "promise": "reserve_spot",
        "promised": "reserved",
        "rehearse": "dry_run",
        "room": "headroom, Reservation",
        "rooms": "node_usage",
        "shelf": "Indexer",
        "sieve": "ReasonFilter",
        "standing": "node_status",
        "statusboard": "StatusWriter",
        "surface": "labels_annotations",
        "taking": "onboard",
        "tie": "Attachment",
        "tied": "attached_as",
        "told": "published",
        "turns": "move_limit",
        "vitals": "health_checks",
        "voices": "external_signals",
        "wake": "Enqueue",
        "zeroing": "statefulset.table",
    }
    # Where one of them is somebody else's word, or means what it means in English.
    ALLOWED: Mapping[tuple[str, str], str] = {
        ("turns", "tests/bench/scale/__main__.py"): "an option of `make scale`, argparse names the attribute",
    }
    # Pages of the dashboard, and the recording, came beside this list, with words of their own.
    ALLOWED_BELOW: Mapping[str, frozenset[str]] = {
        "splitter/plugin/dashboard": frozenset({"news", "room", "told"}),
        "lab/demo": frozenset({"room", "told"}),
        "tests/plugin/dashboard": frozenset({"told"}),
    }
    ALLOWED_ANYWHERE: Mapping[str, str] = {
        "mark": "pytest.mark; a variable that holds the OwnershipMark or a position in a YAML file",
    }

    @classmethod
    def private(cls, path: Path) -> list[str]:
        """Return the names that a module defines or uses and that are private words."""
        used = (word.strip("_").lower() for word in (*identifiers(path), path.stem) if word != "Mark")
        return sorted(
            {word for word in used if word in cls.PRIVATE and (word, name(path)) not in cls.ALLOWED}
            - set(cls.ALLOWED_ANYWHERE)
            - cls.ALLOWED_BELOW.get(name(path).rpartition("/")[0], frozenset())
        )

    def test_no_name_is_private(self) -> None:
        """No module, class, function, argument or variable bears one."""
        wrong = {
            name(path): {word: self.PRIVATE[word] for word in words}
            for path in (*modules("splitter"), *modules("lab"), *modules("tests"))
            if (words := self.private(path))
        }
        assert not wrong, f"say instead {wrong}"

    def test_a_class_called_mark_says_of_what(self) -> None:
        """OwnershipMark, CapacityEvidence, UsagePoint: three things had that name."""
        assert not [name(path) for path in modules("splitter") if "Mark" in identifiers(path)]

    def test_what_is_allowed_is_there(self) -> None:
        """An exception that is no longer used is taken off the list."""
        for word, file in self.ALLOWED:
            assert word in identifiers(ROOT / file)

    @pytest.mark.parametrize(
        "path",
        [
            path
            for path in (*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md")))
            if path.name != "CHANGELOG.md"
            and path.parent.name != "adr"  # history keeps the words of its time
        ],
        ids=name,
    )
    def test_no_page_names_one(self, path: Path) -> None:
        """What stands in code type in a page of the docs is called so in the code."""
        spans = re.findall(r"`([^`\n]+)`", path.read_text(encoding="utf-8"))
        words = {word.lower() for span in spans for word in re.findall(r"(?<![-/.$])\b[A-Za-z_]+\b", span)}
        in_prose = {"doorway", "fight", "fighter", "fights", "herald"}
        prose = in_prose & set(re.findall(r"[a-z]+", path.read_text(encoding="utf-8").lower()))
        # A probe in a manifest, the argument of a command.
        assert not (words & set(self.PRIVATE) - {"mark", "pass", "probe", "turns"}) | prose


class TestKopf:
    """kopf is the shell: start-up, clean-up, probes and plain events, nothing that marks users' objects."""

    def test_only_its_harmless_handlers_are_used(self) -> None:
        """No index, timer, daemon or handler of created, updated or deleted objects is used."""
        used = {
            (name(path), attribute)
            for path in modules("splitter")
            for attribute in attributes(path)
            if attribute.startswith("kopf.") and attribute.rsplit(".", 1)[1] in FORBIDDEN_KOPF
        }
        assert not used


class TestSandbox:
    """The sandbox judges splitter, so it does not look through splitter's eyes (ADR 2)."""

    def test_uses_the_synchronous_client_only(self) -> None:
        """The asynchronous client that splitter uses is not imported."""
        assert not [
            (name(path), module)
            for path in modules("lab/sandbox")
            for module in imports(path)
            if module.startswith("kubernetes.aio")
        ]


class TestTests:
    """Time is an argument; end-to-end tests wait for a condition with a deadline."""

    def test_never_sleep(self) -> None:
        """No test calls a sleep, nor does what measures; people watch the demo and the sandbox."""
        sleeps = {"time.sleep", "asyncio.sleep"}
        watched = (*modules("lab/sandbox"), *modules("lab/demo"))
        paths = [path for path in (*modules("lab"), *modules("tests")) if path not in watched]
        assert not [name(path) for path in paths if sleeps & (attributes(path) | imports(path))]

    def test_import_no_test(self) -> None:
        """What two test files share has a module of its own: no file imports from a test or a conftest."""
        lent = [
            (name(path), module)
            for path in modules("tests")
            for module in imports(path)
            if any(part == "conftest" or part.startswith("test_") for part in module.split("."))
        ]
        assert not lent


class TestExamples:
    """What a docstring shows is what comes out: people read it first."""

    @pytest.mark.parametrize(
        "path",
        [one for one in (*modules("splitter"), *modules("lab")) if ">>> " in one.read_text(encoding="utf-8")],
        ids=name,
    )
    def test_are_true(self, path: Path) -> None:
        """Each of a module, with that module's names."""
        dotted = name(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        ran = doctest.testmod(importlib.import_module(dotted), raise_on_error=True)
        assert ran.attempted


class TestMirror:
    """The tests of a module are found by its name: those of kube/lease.py are tests/kube/test_lease.py."""

    # Suites, whose files are promises and not modules.
    SUITES: tuple[str, ...] = ("bench", "chaos", "chart", "compatibility", "e2e", "floods", "fuzz", "lives")
    SUITES += ("memory", "model", "monitoring", "release", "soak", "stories", "templates", "upgrade", "world")
    ALLOWED: Mapping[str, str] = {
        "tests/plugin/dashboard/test_browser.py": "the page, as a browser shows it",
        "tests/test_architecture.py": "docs",
        "tests/test_argocd.py": "manifests",
        "tests/test_cpu.py": "bounds of other tests",
        "tests/test_dockerfile.py": "the image",
        "tests/test_house.py": "the rules of the house",
        "tests/test_karmada.py": "manifests",
        "tests/test_listening.py": "the server of other tests",
        "tests/test_manifests.py": "manifests",
        "tests/test_planted.py": "what end-to-end tests look for",
        "tests/test_rbac_reference.py": "docs",
        "tests/test_reference.py": "docs",
        "tests/test_security_page.py": "docs",
        "tests/test_specification.py": "docs",
        "tests/test_start.py": "the process, from its start to a clean end",
    }

    # So many modules are proven through those that use them: this number only falls.
    WITHOUT = 30

    @staticmethod
    def named_in(folder: Path) -> set[str]:
        """Return the names that tests in a folder may have: those of the modules and packages there."""
        named = {Path(folder).name}
        for there in (ROOT / "splitter" / folder, ROOT / "lab" / folder):
            named |= {path.stem.strip("_") for path in there.glob("[!.]*.*")}
            named |= {path.parent.name for path in there.glob("*/__init__.py")}
        return named

    def is_of_a_module(self, path: Path) -> bool:
        """Whether a test stands where its module does: `test_lease`, or `test_lease_elsewhere` for a part."""
        called = path.stem.removeprefix("test_")
        named = self.named_in(path.relative_to(ROOT / "tests").parent)
        return any(called == one or called.startswith(f"{one}_") for one in named)

    def test_each_test_stands_where_its_module_does(self) -> None:
        """But for suites, and for what is named here."""
        others = {
            name(path)
            for path in modules("tests")
            if path.stem.startswith("test_") and path.relative_to(ROOT / "tests").parts[0] not in self.SUITES
            if not self.is_of_a_module(path)
        }
        assert others == set(self.ALLOWED)

    def test_modules_without_a_test_become_no_more(self) -> None:
        """A new module has a test of its name; an old one that gets its own lowers the number.

        What has no function does nothing that could be proven: words and shapes of data.
        """
        definitions = ast.FunctionDef | ast.AsyncFunctionDef
        tests = {name(path).removesuffix(".py") for path in modules("tests")}
        without = []
        for path in (*modules("splitter"), *modules("lab")):
            folder = Path(*path.relative_to(ROOT).parts[1:-1])
            if folder.parts[:1] and folder.parts[0] in (*self.SUITES, "fixtures"):
                continue
            called = folder.name if path.stem == "__init__" else path.stem.strip("_")
            test = (Path("tests") / folder / f"test_{called}").as_posix()
            tested = any(one == test or one.startswith(f"{test}_") for one in tests)
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if not tested and any(isinstance(node, definitions) for node in ast.walk(tree)):
                without.append(name(path))
        assert len(without) <= self.WITHOUT, without


class TestSuites:
    """No test falls between the suites."""

    def test_end_to_end_tests_lie_where_they_are_collected(self) -> None:
        """`make test-e2e` looks into a few places only, and each test with the marker lies there."""
        [line] = re.findall(r"^E2E +:= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        places = [ROOT / place for place in line.split()]
        marked = [path for path in modules("tests") if "pytest.mark.e2e" in attributes(path)]
        assert marked
        assert not [name(path) for path in marked if not any(map(path.is_relative_to, places))]

    def test_files_that_are_named_are_there(self) -> None:
        """What begins first, and what stays together, are files of end-to-end tests."""
        conftest = ast.parse((ROOT / "tests/conftest.py").read_text(encoding="utf-8"))
        named = {
            word
            for node in conftest.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
            for word in ast.literal_eval(node.value)
        }
        assert len(named) > 10
        assert named <= {path.stem for path in modules("tests") if "pytest.mark.e2e" in attributes(path)}


class TestReasons:
    """People look a reason up: each is documented, and no other is."""

    def test_are_all_in_the_reference(self) -> None:
        """Every reason has exactly one row, and every row is a reason."""
        text = (ROOT / "docs/reference/reasons.md").read_text(encoding="utf-8")
        rows = re.findall(r"^\| `([A-Za-z]+)` \|", text, flags=re.MULTILINE)
        assert sorted(rows) == sorted(reason.value for reason in Reason)

    @pytest.mark.parametrize("reason", Reason)
    def test_are_one_word(self, reason: Reason) -> None:
        """A reason is one CamelCase word, as conditions and Events ask for."""
        assert re.fullmatch(r"([A-Z][a-z]+)+", reason.value)


class TestDecisions:
    """A decision has a cause; reasons and sentences are made of it, and never the other way."""

    # Module: how often it compares a plan's or a note's reason, and why that is no decision.
    ALLOWED: Mapping[str, tuple[int, str]] = {
        "splitter/core/causes.py": (1, "a Trouble is a cause: what the kubelet or the API server said"),
        "splitter/core/replica.py": (1, "a Trouble is a cause"),
        "splitter/core/conditions.py": (2, "what kstatus is told of a verdict"),
        "splitter/core/eligibility/__init__.py": (1, "which sentence a Split goes on showing"),
        "splitter/core/deployment/unowned.py": (1, "the API server's last answer, as the Split keeps it"),
        "splitter/core/placement/table.py": (1, "which of two verdicts is shown"),
        "splitter/core/troubles.py": (2, "which of two sentences is shown"),
        "splitter/core/twins/alone.py": (1, "the API server's last answer, as the Split keeps it"),
        "splitter/core/twins/onboard.py": (1, "who resumed the source, as the Split keeps it"),
        "splitter/core/twins/steady.py": (1, "which of two verdicts is shown"),
        "splitter/reconciler/__init__.py": (1, "a log line's level"),
        "splitter/reconciler/answers.py": (1, "an API error"),
    }

    @staticmethod
    def branches(path: Path) -> int:
        """Count the comparisons of a reason with one of splitter's own."""
        return sum(
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Attribute)
            and node.left.attr == "reason"
            and not any(
                re.fullmatch(r"[A-Z_]*NOT_LEADING|KIND_MISSING", ast.unparse(one)) for one in node.comparators
            )
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        )

    def test_branch_on_causes(self) -> None:
        """No module but these compares a reason, and none of these more often than is written here."""
        paths = (*modules("splitter/core"), *modules("splitter/reconciler"))
        branching = {name(path): count for path in paths if (count := self.branches(path))}
        del branching[
            "splitter/core/nodes/signals.py"
        ]  # the reasons of Kubernetes' Events, which others write
        assert branching == {module: count for module, (count, _) in self.ALLOWED.items()}


class TestKinds:
    """Holders answer for their kind (`core/holders`): the rest of the core does not ask for it."""

    # Folders of one kind each, and those that decide which of them a workload gets.
    HOMES = ("holders", "statefulset", "placement", "deployment", "eligibility")
    ASKS = re.compile(
        r"\b(first_ordinal|ordinal|stateful) is (not )?None"
        r"|(==|!=|\bis|\bis not) ([A-Za-z_.]*\.)?(STATEFUL_SET\b|DEPLOYMENT\b|\"Deployment\"|\"StatefulSet\")"
        r"|isinstance\(.*\b(TwinView|ReplicaSetView)\b|\bkeeps_names\b"
    )
    # Module: how many lines of it ask, and what for. The numbers only fall.
    ALLOWED: Mapping[str, tuple[int, str]] = {
        "splitter/core/desired/twin.py": (1, "what a twin's manifest keeps of its source's"),
        "splitter/core/labels_annotations/__init__.py": (2, "the names of Splits"),
        "splitter/core/labels_annotations/policy.py": (1, "the defaults"),
        "splitter/core/limits.py": (1, "members are limited"),
        "splitter/core/mode.py": (1, "how a kind is split"),
        "splitter/core/names.py": (1, "a workload in words"),
        "splitter/core/plan.py": (1, "members are limited"),
        "splitter/core/planner/__init__.py": (1, "which table chooses the step"),
        "splitter/core/rebalance/inputs.py": (1, "dead members hold their names"),
        "splitter/core/replica.py": (1, "whether a pod that has gone is counted by its controller"),
        "splitter/core/twins/onboard.py": (2, "which writes conflict, what a take-over does"),
        "splitter/core/twins/relief_status.py": (1, "why no member is moved off a hot node"),
        "splitter/core/twins/rollout.py": (1, "which rolls have numbers"),
        "splitter/core/twins/steps.py": (1, "spot needs no soak before the first move"),
        "splitter/core/twins/write_order.py": (1, "members have no deletion costs"),
    }

    def test_are_asked_for_no_more_often(self) -> None:
        """A new branch on the kind belongs into a holder; one that goes lowers the number here."""
        homes = tuple(f"splitter/core/{home}/" for home in self.HOMES)
        lines = {
            name(path): sum(map(bool, map(self.ASKS.search, path.read_text(encoding="utf-8").splitlines())))
            for path in modules("splitter/core")
            if not name(path).startswith(homes)
        }
        asking = {module: count for module, count in lines.items() if count}
        assert asking == {module: count for module, (count, _) in self.ALLOWED.items()}


class TestLocks:
    """Whoever installs chooses where packages come from, and gets the ones that were tested."""

    LOCKS = ("requirements.lock", "requirements-build.lock", "requirements-dev.lock")

    @staticmethod
    def pins(lock: str) -> dict[str, str]:
        """Read the pinned version of each package of a lock."""
        text = (ROOT / lock).read_text(encoding="utf-8")
        return dict(re.findall(r"^([a-z0-9._-]+)==([^\s;]+)", text, flags=re.MULTILINE))

    @pytest.mark.parametrize("lock", LOCKS)
    def test_name_no_registry(self, lock: str) -> None:
        """A lock holds no address and no option that names one."""
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert "://" not in text
        assert not re.findall(r"^\s*--(?!hash=)\S+", text, flags=re.MULTILINE)

    @pytest.mark.parametrize("lock", LOCKS)
    def test_hash_every_pin(self, lock: str) -> None:
        """Every pin comes with hashes."""
        text = (ROOT / lock).read_text(encoding="utf-8")
        blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert [block.split("==")[0] for block in blocks if "--hash=sha256:" not in block] == []

    def test_agree(self) -> None:
        """What runs in production is what was tested."""
        tested = self.pins("requirements-dev.lock").items()
        assert self.pins("requirements.lock").items() <= tested
        assert self.pins("requirements-build.lock").items() <= tested

    def test_the_image_installs_what_the_controller_needs(self) -> None:
        """The dependencies with the same bounds, without what only the plugin has; the estimator's too."""
        content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        whole, controller = content["project"]["dependencies"], content["dependency-groups"]["controller"]
        needed = [one for one in whole if re.split(r"\W", one)[0] not in {"rich", "typer"}]
        assert controller == [*needed, *content["project"]["optional-dependencies"]["karmada"]]
        assert not {"rich", "typer"} & set(self.pins("requirements.lock"))


class TestRecords:
    """Decisions are numbered, so that they can be cited."""

    def test_are_numbered(self) -> None:
        """Every record has a number of its own, in its name and in its title. A number may be left out."""
        records = sorted((ROOT / "docs/adr").glob("*.md"))
        numbers = [int(record.name[:4]) for record in records]
        assert len(set(numbers)) == len(numbers) > 40
        for number, record in zip(numbers, records, strict=True):
            assert re.fullmatch(rf"{number:04}-[a-z0-9-]+\.md", record.name)
            assert record.read_text(encoding="utf-8").startswith(f"# {number}. ")


class TestDocs:
    """A link in the docs leads somewhere."""

    @pytest.mark.parametrize(
        "path", sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md")), ids=name
    )
    def test_link_to_what_is_there(self, path: Path) -> None:
        """Every relative link names a file of the repository."""
        links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
        missing = [link for link in links if "://" not in link and not (path.parent / link).exists()]
        assert not missing

    @pytest.mark.parametrize(
        "path",
        [
            path
            for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
            if path.name != "CHANGELOG.md" and path.parent.name != "adr"
        ],
        ids=name,
    )
    def test_can_be_read_as_plain_text(self, path: Path) -> None:
        """Lines stay under 120 columns, tables and code apart; SPLITTER_REGENERATE=1 wraps them."""
        text = path.read_text(encoding="utf-8")
        if os.environ.get("SPLITTER_REGENERATE"):
            path.write_text(wrapped(text), encoding="utf-8")
            text = path.read_text(encoding="utf-8")
        assert not too_long(text)

    def test_read_the_logs_of_all_processes(self) -> None:
        """`kubectl logs deploy/splitter` shows one process of two; a label, ten lines of each unless told."""
        files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "manifests").rglob("*.yaml")]
        lines = [
            (name(path), line)
            for path in (*files, *modules("splitter"), *modules("lab"))
            for line in path.read_text(encoding="utf-8").splitlines()
            if re.search(r"kubectl\b.* logs\b", line)
        ]
        assert [line for _, line in lines if "app.kubernetes.io/name=splitter" in line]
        one = [
            line
            for line in lines
            if re.search(r"logs\b.* (deploy|deployments?|deployments?\.apps)/\S*splitter\b", line[1])
        ]
        cut = [line for line in lines if " -l " in line[1] and not {"--prefix", "--tail"} <= options(line[1])]
        assert not one + cut

    @pytest.mark.parametrize(
        "path",
        [
            path
            for path in sorted((ROOT / "docs" / "runbooks").glob("*.md"))
            # While nobody leads, or nobody runs, there is no holder to ask.
            if "splitter-system logs " in path.read_text(encoding="utf-8")
            and path.stem not in {"SplitterDown", "SplitterNoLeader"}
        ],
        ids=name,
    )
    def test_read_the_log_of_the_leader_first(self, path: Path) -> None:
        """Only who holds the Lease decides, so a runbook reads the log of that pod, in one line."""
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if " logs " in line]
        holder = (
            'logs "$(kubectl -n splitter-system get lease splitter'
            " -o jsonpath='{.spec.holderIdentity}' | cut -d_ -f1)\""
        )
        assert holder in lines[0]


class TestBundled:
    """Files that travel with splitter are found, or their absence is named."""

    def test_are_found_in_a_checkout(self) -> None:
        """An edit in a checkout counts at once."""
        assert bundled_path("manifests/crd.yaml") == ROOT / "manifests" / "crd.yaml"

    def test_are_named_when_missing(self) -> None:
        """What is missing, and where it was looked for, is said."""
        with pytest.raises(FileNotFoundError, match=r"manifests/nothing\.yaml is missing"):
            bundled_path("manifests/nothing.yaml")

    @pytest.mark.parametrize("path", ["", "docs/limits.md", "manifests/../README.md", "/etc/passwd"])
    def test_are_not_just_any_file(self, path: str) -> None:
        """A path outside the bundled folders is refused."""
        with pytest.raises(ValueError, match="is not a bundled path"):
            bundled_path(path)
