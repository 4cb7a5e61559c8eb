"""What of a foreign sentence may stand in the log: what happened, and where, but no value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu import cpu_below
from splitter.report.discretion import EXCEPTION_MAX, WithoutValues, traceback_of, without_values

SECRET = "hunter2"
INVALID = 'Deployment.apps "web-spot" is invalid: spec.template.spec.containers[0].'
# As API servers, webhooks, kubelets, kopf and Python itself say it; %s is what a user has written.
IMAGE = f'{INVALID}image: Invalid value: "%s": must not have leading or trailing whitespace'
SELECTOR = (
    'spec.selector: Invalid value: &v1.LabelSelector{MatchLabels:map[string]string{"app":"%s"},'
    " MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable"
)
SEVERAL = (
    f'{INVALID}a: Invalid value: "%s": wrong, {INVALID}b: Duplicate value: map[string]interface {{}}'
    '{"name":"%s"}'
)
DIFFERENCE = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`\n"
    '  core.PodSpec{\n- \tImage: "%s",\n+ \tImage: "b\\"%s",\n  }'
)
NOT_JSON = (
    "json: cannot unmarshal number into Go struct field Container.env, error found in #10 byte of"
    ' ...|value":%s|..., bigger context ...|{"name":"A","value":%s|...'
)
NOT_TYPED = (
    "failed to create typed patch object (shop/web-spot; apps/v1, Kind=Deployment): .spec.template.x:"
    " expected string, got &{%s}"
)
DENIED = (
    "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'images'"
    " denied request: image %s is not allowed"
)
QUOTA = 'pods "web-x2v" is forbidden: exceeded quota: small, requested: limits.cpu=%s, used: pods=2'
RUNTIME = 'failed to create containerd task: exec: "--token=%s": executable file not found in $PATH: unknown'
# As API servers, webhooks, kubelets, kopf and Python itself say it, and what must be left; %s is what a
# user has written.
SENTENCES = {
    "a text": (IMAGE, "containers[0].image: Invalid value: …: must not have leading or trailing whitespace"),
    "a number": (
        f"{INVALID}ports[0].containerPort: Invalid value: 70000%s: must be between 1 and 65535, inclusive",
        "containerPort: Invalid value: …: must be between",
    ),
    "a choice": (
        f'{INVALID}imagePullPolicy: Unsupported value: "%s": supported values: "Always", "Never"',
        "imagePullPolicy: Unsupported value: …: supported values",
    ),
    "an object as JSON": (
        f'{INVALID}env[0].valueFrom: Invalid value: {{"a":{{"b":"%s"}},"c":["x: %s"]}}: must refer to one',
        "env[0].valueFrom: Invalid value: …: must refer to one",
    ),
    "an object of Go's": (SELECTOR, "spec.selector: Invalid value: …: field is immutable"),
    "a map of Go's": ("cannot use map[app:%s tier:web] here", "cannot use map[…]"),
    "several": (SEVERAL, "b: Duplicate value: …"),
    "a difference": (DIFFERENCE, DIFFERENCE.splitlines()[0]),
    "JSON that was not understood": (NOT_JSON, "Container.env, error found in #10 byte of …"),
    "an apply": (NOT_TYPED, ".spec.template.x: expected string, got …"),
    "a webhook": (
        'admission webhook "check.example.com" denied the request: the variable PASSWORD=%s is too short',
        "denied the request: …",
    ),
    "a policy of somebody's": (DENIED, "denied request: …"),
    "a quota": (QUOTA, "exceeded quota: small, requested: limits.cpu=…, used: pods=…"),
    "a runtime": (RUNTIME, "exec: …: executable file not found in $PATH: unknown"),
    "a registry": ("pulling from https://me:%s@registry.example", "from https://…@registry.example"),
    "a node selector": ("0 of 4 healthy spot nodes have disktype=%s", "spot nodes have disktype=…"),
    "an affinity": ("0 of 4 healthy spot nodes have zone In (%s, b)", "spot nodes have zone In (…)"),
    "a bound": ("0 of 4 healthy spot nodes have generation Gt (%s)", "spot nodes have generation Gt (…)"),
    "Python": ("invalid literal for int() with base 10: '%s'", "invalid literal for int() with base 10: …"),
    "a text in a text": ("KeyError: 'it\\'s %s'", "KeyError: …"),
    "what was cut off": ('quantity "%s', "quantity …"),
    "what was cut off within single quotes": ("quantity '%s", "quantity …"),
}
OURS = "splitter-own-account"
RIGHT = (
    'User "system:serviceaccount:splitter-system:splitter" cannot patch resource "deployments" in API group'
)
# What operators need, and nobody but the API server and splitter's own manifests has written.
WHOLE = (
    f'{RIGHT} "apps" in the namespace "shop"',
    f'{RIGHT} "" at the cluster scope',
    f"ValidatingAdmissionPolicy '{OURS}' with binding '{OURS}' denied request: it's splitter's account",
    f"ValidatingAdmissionPolicy 'b-{OURS}' with binding 'b-{OURS}' denied request: it's splitter's",
    "ValidatingAdmissionPolicy 'blue-own-account' with binding 'blue-own-account' denied request: it's ours",
    "0 NoAnswer: ClientConnectorError: Cannot connect to host 10.0.0.1:443 ssl:default",
    "scale on-demand 3 -> 6 (+3): 3 of 7 spot replicas are ready after a loss",
    "splitter's account leaves the sources' names; look at `kubectl logs --previous` of the pod",
    "pods get other names: annotate splitter.io/mode=twins",
    "Operation cannot be fulfilled: the object has been modified; please apply your changes",
)


class TestWithoutValues:
    @pytest.mark.parametrize("what", SENTENCES)
    def test_cuts_what_a_user_wrote(self, what: str) -> None:
        """What happened and at which field stays; what stood there goes, however it is quoted."""
        sentence, left = SENTENCES[what]
        text = without_values(sentence.replace("%s", SECRET))
        assert SECRET not in text
        assert left in text

    @pytest.mark.parametrize("what", SENTENCES)
    def test_cuts_what_has_signs_in_it(self, what: str) -> None:
        """A value with quotes, as whoever quotes it escapes it, spaces and line breaks, is cut whole."""
        sentence, _ = SENTENCES[what]
        if '"%s"' in sentence:
            assert SECRET not in without_values(sentence.replace("%s", f'a\\"b: {SECRET} c=d\\n{SECRET}'))

    @pytest.mark.parametrize("sentence", WHOLE)
    def test_leaves_what_holds_none(self, sentence: str) -> None:
        """Who lacks which right, what a policy of splitter's own says, and its own sentences stay whole."""
        assert without_values(sentence) == sentence

    def test_leaves_a_right_in_the_midst(self) -> None:
        """The right that is missing stays, the name of the object before it is cut."""
        sentence = f'403 Forbidden: deployments.apps "{SECRET}" is forbidden: {WHOLE[0]}: "{SECRET}"'
        text = without_values(sentence)
        assert WHOLE[0] in text
        assert SECRET not in text

    @given(st.text(max_size=40))
    def test_cuts_any_quoted_text(self, value: str) -> None:
        """Whatever Go quotes is cut as far as the end of it."""
        quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        assert without_values(f"a: Invalid value: {quoted}: wrong") == "a: Invalid value: …: wrong"

    @given(st.text(alphabet="\"'\\={}[]()&| :,abgotmpvlue.\n", max_size=200))
    def test_takes_anything(self, text: str) -> None:
        """Any text is taken, and what is left holds no closed quotation."""
        result = without_values(text)
        assert '"' not in result

    @pytest.mark.parametrize("sign", ["{", '"', "'", "map[", "a=", "value: ", "(", "got &", "...|", "\\"])
    def test_is_quick(self, sign: str) -> None:
        """A message made to be slow to read is not."""
        with cpu_below(1.0):
            without_values(sign * 30_000)


class TestReported:
    def test_an_exception(self) -> None:
        """An exception is its words without values, cut; asked for itself, with its type."""
        assert str(WithoutValues(ValueError(f"bad value: '{SECRET}'"))) == "bad value: …"
        assert repr(WithoutValues(KeyError(SECRET))) == "KeyError(…)"
        assert len(str(WithoutValues(ValueError("x" * 5000)))) == EXCEPTION_MAX
        assert str(WithoutValues(TimeoutError())) == "TimeoutError"

    def test_an_exception_that_cannot_be_told(self) -> None:
        """One whose own words fail is told by its type alone."""

        class OddError(Exception):
            def __str__(self) -> str:
                raise RuntimeError(SECRET)

        assert str(WithoutValues(OddError())) == "OddError"


def fail_for_a_cause() -> None:
    """Fail as a bug in reading a value would, with a cause of the same kind."""
    value = {"password": SECRET}["password"]
    try:
        int(value)
    except ValueError as error:
        raise ExceptionGroup("two", [KeyError(value), TimeoutError()]) from error


class TestTraceback:
    def test_names_places_and_no_values(self) -> None:
        """Where it came from and why is told, with all causes and parts, and no local variable's value."""
        with pytest.raises(ExceptionGroup) as caught:
            fail_for_a_cause()
        text = traceback_of(caught.value)
        assert SECRET not in text
        for words in (
            "in fail_for_a_cause",
            "ValueError: invalid literal",
            "ExceptionGroup: two",
            "KeyError: …",
        ):
            assert words in text

    def test_is_bounded(self) -> None:
        """A chain without end is told as far as its last links."""
        error: Exception = ValueError("first")
        for number in range(100):
            follower = ValueError(f"number {number}")
            follower.__cause__ = error
            error = follower
        text = traceback_of(error)
        assert "number 99" in text
        assert text.count("Traceback") < 20
