"""The policies that look at labels and annotations when they are written: `kubectl apply` says what is wrong.

One refuses what the parser (`core.labels_annotations`) could not read, in the parser's own sentence; the
other warns of what the parser would ignore. Both look only at values that change, so that a bad one that is
there already is in nobody's way, and both let everything pass when they cannot be evaluated. `splitter
admission` prints them; tests/e2e/test_annotation_policies.py holds them in step with the parser, case by
case, on a real API server. They must never be needed: the controller reads everything anew.
"""

from typing import Final

from splitter.admission.expressions import Manifest, lines, literal, policy, variables
from splitter.core import labels_annotations as keys
from splitter.core.labels_annotations import words
from splitter.core.labels_annotations.policy import ANNOTATIONS, USER_ANNOTATIONS

FORMS: Final[dict[str, words.Form[object]]] = {row.key: row.form for row in ANNOTATIONS}
"""How each annotation of the user's is written, in the order in which the parser reads them."""

# What Python's str.split() takes for white space, as RE2 writes it.
_SPACE: Final = (
    r"[\x{09}-\x{0d}\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}"
    r"\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]"
)
_NAMED_ESCAPES: Final = {
    "\\": "\\\\",
    '"': '\\"',
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\b": "\\b",
    "\f": "\\f",
}
_CONTROL: Final = range(0x20)

# No value that a label can have.
_NO_LABEL: Final = " "

_CHANGED_ANNOTATION: Final = (
    "({key} in variables.annotations && !({key} in variables.former &&"
    " variables.former[{key}] == variables.annotations[{key}]))"
)
_CHANGED_LABEL: Final = (
    f"({literal(keys.LABEL_SPLIT)} in variables.labels && variables.label != variables.formerLabel)"
)


def annotation_policies() -> list[Manifest]:
    """Return the policy that refuses what cannot be read and the one that warns, each with its binding."""
    refusing: Manifest = {
        **_common(),
        "variables": variables(
            **_written(),
            forms=lines([_row(key, form) for key, form in FORMS.items()]),
            wrong=_wrong(),
            isWrongLabel=f"{_CHANGED_LABEL} &&\n"
            f"!(variables.label in {literal([keys.SPLIT_ENABLED, keys.SPLIT_TWIN, keys.SPLIT_PARKED])})",
            sentences=_sentences(),
        ),
        "validations": [
            {
                "expression": "!variables.isWrongLabel",
                "message": f"the label {keys.LABEL_SPLIT} is wrong",
                "messageExpression": _wrong_label(),
            },
            {
                "expression": "size(variables.wrong) == 0",
                "message": f"an annotation under {keys.PREFIX} is wrong",
                "messageExpression": 'variables.sentences.join(" ")',
            },
        ],
    }
    warning: Manifest = {
        **_common(),
        "variables": variables(
            **_written(),
            known=lines([*USER_ANNOTATIONS, *keys.OWN_ANNOTATIONS]),
            unknown=(
                f"variables.annotations.filter(key, key.startsWith({literal(keys.PREFIX)}) &&\n"
                f"!(key in variables.known) && {_CHANGED_ANNOTATION.format(key='key')})"
            ),
        ),
        "validations": [
            {
                "expression": f"!({_CHANGED_LABEL} &&\n"
                f"variables.label in {literal([keys.SPLIT_TWIN, keys.SPLIT_PARKED])})",
                "message": f"the label {keys.LABEL_SPLIT} marks what splitter owns",
                "messageExpression": _copied_label(),
            },
            {
                "expression": "size(variables.unknown) == 0",
                "message": f"an annotation under {keys.PREFIX} is not known",
                "messageExpression": _unknown(),
            },
        ],
    }
    kind = "ValidatingAdmissionPolicy"
    return [
        *policy(kind, "splitter-wrong-values", refusing, {"validationActions": ["Deny"]}),
        *policy(kind, "splitter-ignored-keys", warning, {"validationActions": ["Warn"]}),
    ]


def _common() -> Manifest:
    """Return the match conditions: objects with a key of ours that splitter does not own."""
    operations = ["CREATE", "UPDATE"]
    has_key = (
        f"object.metadata.?annotations.orValue({{}}).exists(key, key.startsWith({literal(keys.PREFIX)})) ||\n"
        f"{literal(keys.LABEL_SPLIT)} in object.metadata.?labels.orValue({{}})"
    )
    return {
        "failurePolicy": "Ignore",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["*"],
                    "operations": operations,
                    "resources": ["deployments", "statefulsets"],
                },
                {
                    "apiGroups": [""],
                    "apiVersions": ["*"],
                    "operations": operations,
                    "resources": ["namespaces"],
                },
            ]
        },
        "matchConditions": [
            {"name": "has-a-key-of-ours", "expression": has_key},
            {
                "name": "is-no-twin",
                "expression": f"!({literal(keys.LABEL_POOL)} in object.metadata.?labels.orValue({{}}))",
            },
        ],
    }


def _written() -> dict[str, str]:
    """Return the variables for the new values and the old ones."""
    annotations = "metadata.?annotations.orValue({})"
    label = f"metadata.?labels[{literal(keys.LABEL_SPLIT)}].orValue({literal(_NO_LABEL)})"
    # On a Namespace the label says nothing.
    is_namespace = 'request.resource.resource == "namespaces"'
    return {
        "annotations": f"dyn(object).{annotations}",
        "former": f"oldObject == null ? {{}} : dyn(oldObject).{annotations}",
        "labels": f"{is_namespace} ? {{}} : dyn(object).metadata.?labels.orValue({{}})",
        "label": f"dyn(object).{label}",
        "formerLabel": f"oldObject == null ? {literal(_NO_LABEL)} : dyn(oldObject).{label}",
        "where": f'{is_namespace} ? " on the Namespace" : ""',
    }


def _row(key: str, form: words.Form[object]) -> dict[str, str]:
    least, most = form.within_s or (None, None)
    return {
        "key": key,
        "pattern": f"^(?:{form.pattern})$",
        "least": "" if least is None else f"{least}s",
        "most": "" if most is None else f"{most}s",
        "must": form.must_be,
        "example": form.example,
    }


def _reads(text: str) -> str:
    """Return whether a text is of the form of `row`: `Form.read` in CEL."""
    return (
        f'({text}.matches(row.pattern) && (row.most == "" || ({text} != "" &&\n'
        f"duration({text}) >= duration(row.least) && duration({text}) <= duration(row.most))))"
    )


def _wrong() -> str:
    changed = _CHANGED_ANNOTATION.format(key="row.key")
    return f"variables.forms.filter(row,\n{changed} &&\n!{_reads('variables.annotations[row.key]')})"


def _sentences() -> str:
    """Return one sentence for each wrong annotation: that of `parse_policy`."""
    text = "variables.annotations[row.key]"
    return (
        "variables.wrong.map(row,\n"
        f'row.key + variables.where + " is " + {_quoted(text)} +\n'
        f'"; it must be " + row.must + ". " + {_advice(text)} +\n'
        '" Until then the last good policy stays in force.")'
    )


def _advice(text: str) -> str:
    """Return what to write instead: `Form.advice` in CEL."""
    bare = f"{text}.split('').filter(sign, !sign.matches({literal(_SPACE)})).join('')"
    guesses = (
        "[bare, bare.lowerAscii(), bare.lowerAscii().find('^.*[^%]'),"
        " bare.lowerAscii().replace('_', '-'), bare.lowerAscii() + 's']"
    )
    return (
        f"((size({text}) > {words.REPAIRED_MAX} ? [] : [{bare}]).filter(bare, bare != '')\n"
        f".map(bare, {guesses}\n"
        f".filter(guess, {_reads('guess')})).filter(good, size(good) > 0)\n"
        ".map(good, 'Write \"' + good[0] + '\".')\n"
        "+ ['Write for example \"' + row.example + '\".'])[0]"
    )


def _quoted(text: str) -> str:
    """Return a text quoted, escaped and shortened: `words.quoted` in CEL."""
    escapes = dict(_NAMED_ESCAPES)
    escapes |= {chr(code): f"\\u{code:04x}" for code in _CONTROL if chr(code) not in _NAMED_ESCAPES}
    chain = "".join(f".replace({literal(sign)}, {literal(written)})" for sign, written in escapes.items())
    return f"'\"' + {_shortened(text)}{chain} + '\"'"


def _shortened(text: str) -> str:
    return (
        f"(size({text}) <= {words.QUOTED_MAX} ? {text} : {text}.substring(0, {words.QUOTED_MAX}) +\n"
        f'"... (" + string(size({text})) + " characters)")'
    )


def _wrong_label() -> str:
    # A label holds nothing that would have to be escaped.
    return f"'{keys.LABEL_SPLIT} is \"' + {_shortened('variables.label')} +\n" + literal(
        f'"; it must be "{keys.SPLIT_ENABLED}". Write "{keys.SPLIT_ENABLED}" to split this workload,'
        " or remove the label to have it back."
    )


def _copied_label() -> str:
    before = literal(f'{keys.LABEL_SPLIT} is "')
    after = literal(
        '", which marks what splitter owns: it is not split again. '
        f'Write "{keys.SPLIT_ENABLED}" if this is a workload of yours that carries a copied label.'
    )
    return f"{before} + variables.label +\n{after}"


def _unknown() -> str:
    labels = literal([keys.LABEL_SPLIT, keys.LABEL_POOL, keys.LABEL_SOURCE])
    as_label = literal(" is read as a label only. Write it under labels, or remove it.")
    unknown = literal(
        f" is not an annotation splitter knows, and is ignored. Known are: {', '.join(USER_ANNOTATIONS)}."
    )
    return (
        f"variables.unknown.map(key, key + variables.where + (key in {labels} ?\n{as_label} :\n{unknown}))"
        '.join(" ")'
    )
