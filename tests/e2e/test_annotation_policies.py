"""What the API server says to a bad annotation is what the parser says, case by case; nobody is locked out.

No controller runs in these tests: the policies alone answer.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus

import pytest

from e2e.support.admission import checked, steadily
from lab.fixtures.shop import DEADLINE_S, JsonObject, manifest
from lab.sandbox import ApiError, PatchKind, Sandbox
from lab.sandbox.errors import SandboxError
from lab.sandbox.waiting import wait_until
from splitter.admission import annotation_policies
from splitter.admission.annotations import FORMS
from splitter.bundled import bundled_path
from splitter.core.labels_annotations import OWN_ANNOTATIONS
from splitter.core.labels_annotations.label import LabelState, source_label_state
from splitter.core.labels_annotations.policy import USER_ANNOTATIONS, Policy, parse_policy

pytestmark = pytest.mark.e2e

NAMESPACE = "annotated"
FILE = bundled_path("manifests/admission/annotations.yaml")
REFUSING, WARNING = "splitter-wrong-values", "splitter-ignored-keys"
WRONG = {"splitter.io/soak": "?"}

# Each is tried with every annotation: what one takes is wrong for another.
TEXTS = (
    *("", " ", "0", "1", "2", "7", "80", "99", "100", "101", "1000", "999999999", "1000000000", "00", "07"),
    *("-1", "+1", "1.5", "1e3", "0x10", "80%", "80 %", "80%%", "%", "8%0", " 5 ", "five", "\u0665", "\uff15"),
    *("majority", "Majority", " MAJORITY ", "minority", "required", "Preferred", "pre ferred", "REQUIRED"),
    *("0s", "1s", "59s", "60m", "1h", "1h1s", "3600s", "3601s", "24h", "24h1s", "86400s", "1h30m", "30m1h"),
    *(
        "1d",
        "90",
        "10M",
        "10 m",
        "1h 30m",
        "999999h",
        "9999999s",
        "000001s",
        "1h30",
        "h",
        "1m1m",
        "-5s",
        "5.5m",
    ),
    *(
        "true",
        "True",
        "TRUE",
        "yes",
        "false",
        "on",
        "1true",
        "disposable",
        "Disposable",
        "twins",
        "placement",
    ),
    *("one-at-a-time", "surge-first", "unguarded", "Unguarded", "surge first"),
    *("on-demand-first", "on_demand_first", "SPOT_FIRST", "spot-first", "first"),
    *(
        "default",
        "Default",
        "my-set",
        "my_set",
        "-set",
        "set-",
        "a.b",
        "../etc",
        "s" * 63,
        "s" * 64,
        "S" * 64,
    ),
    *(
        "2026-01-31T12:00:00Z",
        "2026-01-31 12:00",
        "x" * 64,
        "x" * 65,
        "x" * 64 + "%",
        "naïve",
        "\u200b",
        "~!",
    ),
    *("cpu=85", "cpu=85,memory=90", "memory=90,cpu=49", "cpu=85, memory=90", "cpu=85%", "cpu=85,cpu=90"),
    *('say "hi"', "back\\slash", "a\nb", "a\tb", "\r\n80", "\x00\x07\x08\x0b\x0c\x1b\x1f", "\x7f", "\u2028"),
    *(
        "\u00a080\u3000",
        "\x1c80\x85",
        "9" * 60,
        "9" * 61,
        "é" * 61,
        "x" * 101,
        " " * 98 + "80",
        " " * 99 + "80",
    ),
    *("\N{GRINNING FACE}" * 61, "{{ 7 * 7 }}", "${HOME}", "null", "[]", "x" * 20000),
)
LABELS = ("enabled", "Enabled", "true", "", "yes", "twin", "parked", "disabled", "e" * 61, "x" * 63)


class Server:
    """An API server that keeps the policies, and one Deployment and one Namespace to write on."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.apps = f"/apis/apps/v1/namespaces/{NAMESPACE}"
        self.deployment = f"{self.apps}/deployments/web"
        self.namespace = f"/api/v1/namespaces/{NAMESPACE}"

    def answer(self, path: str, patch: JsonObject) -> str:
        """Return what the API server says to a patch: nothing, or why not."""
        query = {"dryRun": "All"}
        try:
            self.sandbox.api.request("PATCH", path, body=patch, query=query, content_type=PatchKind.MERGE)
        except ApiError as refusal:
            by_policy = f"ValidatingAdmissionPolicy '{REFUSING}' with binding '{REFUSING}' denied request: "
            who, count, said = str(refusal).partition(by_policy)
            if refusal.status == HTTPStatus.UNPROCESSABLE_ENTITY and count:
                return said
            raise AssertionError(f"{refusal.status} {who}") from refusal
        return ""

    def is_in_force(self) -> bool:
        """Whether both policies are, and stay it: the one refuses, the other warns."""
        return steadily(lambda: self.annotated(self.deployment, WRONG)) and steadily(self.warns)

    def warns(self) -> bool:
        """Whether the second policy warns of a key that nobody knows."""
        patch, warnings = {"metadata": {"annotations": {"splitter.io/colour": "red"}}}, list[str]()
        self.sandbox.api.request(
            "PATCH",
            self.deployment,
            body=patch,
            query={"dryRun": "All"},
            content_type=PatchKind.MERGE,
            warnings=warnings,
        )
        return any(f"ValidatingAdmissionPolicy '{WARNING}'" in one for one in warnings)

    def annotated(self, path: str, annotations: Mapping[str, str]) -> str:
        """Return what it says to annotations."""
        return self.answer(path, {"metadata": {"annotations": dict(annotations)}})

    def labelled(self, path: str, value: str) -> str:
        """Return what it says to a value of the label."""
        return self.answer(path, {"metadata": {"labels": {"splitter.io/split": value}}})

    def warning(self, annotations: Mapping[str, str], kind: str = "deployment", name: str = "web") -> str:
        """Return what kubectl is warned of when it writes annotations."""
        return self._warned("annotate", kind, name, annotations)

    def warning_of_label(self, value: str) -> str:
        """Return what kubectl is warned of when it writes the label."""
        return self._warned("label", "deployment", "web", {"splitter.io/split": value})

    def _warned(self, verb: str, kind: str, name: str, written: Mapping[str, str]) -> str:
        pairs = [f"{key}={text}" for key, text in written.items()]
        strict = ("--warnings-as-errors", "--dry-run=server", "--overwrite")
        try:
            self.kubectl(verb, *strict, kind, name, *pairs)
        except SandboxError as refusal:
            if f"ValidatingAdmissionPolicy '{WARNING}'" in str(refusal):
                return str(refusal)
            raise
        return ""

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl here."""
        return self.sandbox.kubectl("--namespace", NAMESPACE, *arguments, stdin=stdin)


@pytest.fixture(scope="module")
def server(sandbox: Sandbox) -> Iterator[Server]:
    """Yield a server that keeps the policies; they are gone afterwards, for tests that write bad values."""
    one = Server(sandbox)
    sandbox.kubectl("create", "namespace", NAMESPACE)
    one.kubectl("apply", "-f", "-", stdin=json.dumps(manifest("web", 0)))
    sandbox.kubectl("apply", "-f", str(FILE))
    wait_until(one.is_in_force, what="the policies to be in force", deadline_s=DEADLINE_S)
    yield one
    sandbox.kubectl("delete", "-f", str(FILE))
    wait_gone(one)
    sandbox.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


def wait_gone(server: Server) -> None:
    """Wait until nobody refuses a bad value any more: an API server hears of it by a watch."""
    wait_until(
        lambda: steadily(lambda: not server.annotated(server.deployment, WRONG)),
        what="the policies to be gone",
        deadline_s=DEADLINE_S,
    )


def sentences(annotations: Mapping[str, str], *, of_namespace: bool = False) -> str:
    """Return what the parser says to annotations that it refuses."""
    of_source = {} if of_namespace else annotations
    parsed = parse_policy(of_source, Policy(), annotations if of_namespace else None)
    return "" if parsed.policy else " ".join(note.message for note in parsed.problems)


# One request tries a value with several keys: whatever is wrong is said of each, in the parser's order.
TOGETHER = [tuple(USER_ANNOTATIONS[first : first + 4]) for first in range(0, len(USER_ANNOTATIONS), 4)]


def _short(keys: tuple[str, ...]) -> str:
    return " ".join(key.partition("/")[2] for key in keys)


class TestInStepWithTheParser:
    def test_every_annotation_is_looked_at(self) -> None:
        """The policy knows the forms of all annotations that a user may write."""
        assert sorted(FORMS) == sorted(USER_ANNOTATIONS)

    @pytest.mark.parametrize("keys", TOGETHER, ids=_short)
    def test_value(self, server: Server, keys: tuple[str, ...]) -> None:
        """The same values are refused, in the same words, on a workload."""
        said = {text: server.annotated(server.deployment, dict.fromkeys(keys, text)) for text in TEXTS}
        assert said == {text: sentences(dict.fromkeys(keys, text)) for text in TEXTS}
        for key in keys:
            assert {f"{key} is " in words for words in said.values()} == {True, False}, key

    @pytest.mark.parametrize("keys", TOGETHER, ids=_short)
    def test_value_on_a_namespace(self, server: Server, keys: tuple[str, ...]) -> None:
        """And on a Namespace, where the sentence says so."""
        texts = TEXTS[::7]
        said = {text: server.annotated(server.namespace, dict.fromkeys(keys, text)) for text in texts}
        assert said == {text: sentences(dict.fromkeys(keys, text), of_namespace=True) for text in texts}
        assert all("on the Namespace is" in words for words in said.values() if words)

    def test_several_at_once(self, server: Server) -> None:
        """All that is wrong is said at once, in the parser's order."""
        written = dict.fromkeys(reversed(USER_ANNOTATIONS), "?!")
        written["splitter.io/spot-max"] = "4"
        said = server.annotated(server.deployment, written)
        assert said == sentences(written)
        assert said.count("it must be") == len(USER_ANNOTATIONS) - 3  # and the two moments take "?!"

    @pytest.mark.parametrize("value", LABELS)
    def test_label(self, server: Server, value: str) -> None:
        """A value of the label that switches nothing on is refused in the controller's words."""
        state = source_label_state({"splitter.io/split": value})
        refused = state.note.message if state.note and state.state is LabelState.INVALID else ""
        assert server.labelled(server.deployment, value) == refused
        assert server.labelled(server.namespace, value) == ""


class TestWarnings:
    """What splitter ignores is written, with a warning."""

    @pytest.mark.parametrize("kind", ["deployment", "namespace"])
    def test_unknown_annotation(self, server: Server, kind: str) -> None:
        """A key that nobody reads is named; so are the keys there are."""
        wrong = {"splitter.io/spot-percentage": "80"}
        name = NAMESPACE if kind == "namespace" else "web"
        said = server.warning(wrong, kind, name)
        parsed = parse_policy({}, Policy(), wrong) if kind == "namespace" else parse_policy(wrong, Policy())
        assert parsed.problems[0].message.partition(". ")[0] in said
        assert all(key in said for key in USER_ANNOTATIONS)

    def test_known_annotations(self, server: Server) -> None:
        """What is known is written without a word: the user's keys, splitter's own, and anybody else's."""
        assert not server.warning({"splitter.io/spot-percent": "80", "example.com/splitter.io": "x"})
        assert not server.warning(dict.fromkeys(OWN_ANNOTATIONS, "x"))

    @pytest.mark.parametrize("key", ["splitter.io/split", "splitter.io/pool", "splitter.io/source"])
    def test_label_written_as_an_annotation(self, server: Server, key: str) -> None:
        """A label among the annotations does nothing, and kubectl says so."""
        if key in OWN_ANNOTATIONS:
            assert not server.warning({key: "web"})
            return
        [note] = parse_policy({key: "enabled"}, Policy()).problems
        assert note.message in server.warning({key: "enabled"})

    @pytest.mark.parametrize("value", ["twin", "parked"])
    def test_label_copied_from_what_is_ours(self, server: Server, value: str) -> None:
        """A label copied from a twin is written (a backup does that), with a warning."""
        note = source_label_state({"splitter.io/split": value}).note
        assert note is not None
        assert note.message in server.warning_of_label(value)


class TestNobodyIsLockedOut:
    def test_a_bad_value_that_is_there_already(self, server: Server, sandbox: Sandbox) -> None:
        """An object with a bad value can be scaled, rolled, given another annotation, and have it mended."""
        bad = {"splitter.io/soak": "5 minutes", "splitter.io/colour": "red"}
        body = manifest("old", 0, annotations=bad, labels={"splitter.io/split": "yes"})
        with without_policies(sandbox):
            wait_gone(server)
            server.kubectl("apply", "-f", "-", stdin=json.dumps(body))
        path = f"{server.apps}/deployments/old"
        wait_until(server.is_in_force, what="the policies to be in force again", deadline_s=DEADLINE_S)
        assert server.answer(path, {"spec": {"replicas": 1}}) == ""
        assert server.answer(path, {"metadata": {"labels": {"team": "a"}}}) == ""
        assert server.annotated(path, {"splitter.io/spot-percent": "50"}) == ""
        assert server.annotated(path, {"splitter.io/soak": "5m"}) == ""
        assert server.answer(path, {"metadata": {"annotations": dict.fromkeys(bad)}}) == ""
        assert server.answer(path, {"metadata": {"labels": {"splitter.io/split": None}}}) == ""
        changed = {**body, "spec": {**body["spec"], "minReadySeconds": 3}}
        server.kubectl("apply", "--warnings-as-errors", "-f", "-", stdin=json.dumps(changed))
        assert 'splitter.io/soak is "6 minutes"' in server.annotated(path, {"splitter.io/soak": "6 minutes"})

    def test_a_statefulset_is_looked_at_too(self, server: Server) -> None:
        """A StatefulSet with a bad value is refused when it is created."""
        body = manifest("db", 0, annotations={"splitter.io/soak": "5"})
        del body["spec"]["strategy"]
        with pytest.raises(SandboxError, match=r'splitter.io/soak is \\?"5\\?"'):
            server.kubectl("apply", "-f", "-", stdin=json.dumps({**body, "kind": "StatefulSet"}))

    def test_other_workloads(self, server: Server) -> None:
        """Whoever has no key of splitter's is not even looked at; a twin is splitter's business."""
        server.kubectl("apply", "--warnings-as-errors", "-f", "-", stdin=json.dumps(manifest("plain", 0)))
        labels = {"splitter.io/pool": "spot", "splitter.io/split": "twin"}
        twin = manifest("web-spot", 0, labels=labels, annotations={"splitter.io/soak": "5"})
        server.kubectl("apply", "--warnings-as-errors", "-f", "-", stdin=json.dumps(twin))

    def test_more_than_can_be_looked_at(self, server: Server) -> None:
        """200 kB of white space is judged all the same, within what an expression may cost."""
        text = " " * 200_000
        assert server.annotated(server.deployment, {"splitter.io/grace": text}) == sentences(
            {"splitter.io/grace": text}
        )


@contextmanager
def without_policies(sandbox: Sandbox) -> Iterator[None]:
    """Take the bindings away for a moment, as if the policies came later."""
    bindings = [one for one in annotation_policies() if str(one["kind"]).endswith("Binding")]
    for one in bindings:
        sandbox.kubectl("delete", "-f", "-", stdin=json.dumps(one))
    try:
        yield
    finally:
        for one in bindings:
            sandbox.kubectl("apply", "-f", "-", stdin=json.dumps(one))


class TestThePolicies:
    @pytest.mark.parametrize("name", [REFUSING, WARNING])
    def test_have_no_mistake_of_types(self, server: Server, name: str) -> None:
        """The API server finds nothing to complain about, and lets everything pass that it cannot judge."""
        result = checked(server.sandbox, name)
        assert "expressionWarnings" not in json.dumps(result["status"])
        assert result["spec"]["failurePolicy"] == "Ignore"
