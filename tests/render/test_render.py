"""Rendering: values are values whatever they hold, and a broken template says where and why.

Each is rendered by the child process too, which says the same (tests/render/test_bounded.py has its limits).
"""

import asyncio
import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cpu import cpu_below
from splitter.bundled import bundled_path
from splitter.core.desired.compare import rendered_hash
from splitter.core.desired.scheduling import NodePresets
from splitter.core.errors import SplitterError
from splitter.core.labels_annotations.policy import Policy
from splitter.core.model import Rendered
from splitter.core.reasons import Reason
from splitter.core.replica import Pool
from splitter.render import Renderer, TemplateError, TemplateSet, read_template_sets
from splitter.render.bounded import BoundedRenderer

PRESETS = NodePresets(
    spot_terms=({"matchExpressions": [{"key": "spot", "operator": "Exists"}]},),
    on_demand_terms=({"matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]},),
)
SOURCE: dict[str, object] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "annotations": {"note": "kept"}},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web", "items": "a label"}},
            "spec": {"containers": [{"name": "web", "image": "web:1"}, {"name": "log", "image": "log:1"}]},
        },
    },
}
HEAD = "apiVersion: apps/v1\nkind: Deployment\n"
POD = "spec: {template: {spec: {{ source.spec.template.spec }}}}\n"

# All that JSON can say; keys too.
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def renderer(text: str, name: str = "default") -> Renderer:
    """Return a renderer of one set, whose spot template is this text."""
    return Renderer({name: TemplateSet(name, {"deployment/spot.yaml.j2": text})}, PRESETS)


APART: dict[str, TemplateSet] = {}
BOUNDED = BoundedRenderer(Renderer(APART, PRESETS))


@pytest.fixture(scope="module", autouse=True)
def _child() -> Iterator[None]:
    """End the child process."""
    yield
    BOUNDED.close()


def apart(text: str, source: dict[str, object] | None = None) -> Rendered:
    """Return the spot twin as the child process makes it."""
    files = {"deployment/spot.yaml.j2": text}
    APART["default"] = TemplateSet("default", files, config_map="home/default")
    return asyncio.run(BOUNDED.render(source or SOURCE, Pool.SPOT, Policy(), 0))


def render(text: str, source: dict[str, object] | None = None) -> dict[str, dict[str, object]]:
    """Return the spot twin that a template's text gives, here and in the child process."""
    rendered = renderer(text).render(source or SOURCE, Pool.SPOT, Policy())
    assert apart(text, source) == rendered
    manifest = json.loads(rendered.manifest_json)
    assert isinstance(manifest, dict)
    return manifest


def broken(text: str, source: dict[str, object] | None = None) -> TemplateError:
    """Return the error of a template that does not render."""
    with pytest.raises(TemplateError) as caught:
        render(text, source)
    assert caught.value.reason is Reason.TEMPLATE_INVALID
    assert caught.value.file == "default/deployment/spot.yaml.j2"
    assert caught.value.message.endswith(
        "Mend it and try it with `splitter render`. "
        'Until then the workloads of the template set "default" keep their last good twins.'
    )
    with pytest.raises(TemplateError) as there:
        apart(text, source)
    # How deep and how large exactly is not the same there.
    if not re.search("recursion|the twin has", there.value.what):
        assert (there.value.line, there.value.what) == (caught.value.line, caught.value.what)
    return caught.value


def with_annotation(value: object) -> dict[str, object]:
    """Return the source with one annotation."""
    source = copy.deepcopy(SOURCE)
    metadata = source["metadata"]
    assert isinstance(metadata, dict)
    metadata["annotations"] = {"a": value}
    return source


class TestValues:
    @given(JSON)
    @example("', paused: 'x")
    @example("\n---\nkind: Secret")
    @example("\x85\u2028\ufeff\U0001f44b")
    @example(1e300)
    @example({"k" * 2000: {"": "*a"}})
    def test_any_value_arrives(self, value: object) -> None:
        """Whatever JSON a value is, exactly that arrives, on its own."""
        twin = render(
            f"{HEAD}{POD}  value: {{{{ source.metadata.annotations.a }}}}\n".replace(
                "spec: {template: {spec: {{ source.spec.template.spec }}}}\n", "spec:\n"
            ),
            with_annotation(value),
        )
        assert twin["spec"]["value"] == value

    @given(st.text())
    @example("', paused: true, x: '")
    @example('", paused: true, x: "')
    @example("a: b # c")
    @example("]}")
    @example("v0n0z")
    def test_any_text_arrives_within_others(self, value: str) -> None:
        """Between quotes, brackets or other letters a text is a part of the text, and nothing else."""
        twin = render(
            HEAD
            + "spec:\n"
            + "  single: {name: 'a{{ source.metadata.annotations.a }}'}\n"
            + '  double: ["{{ source.metadata.annotations.a }}z"]\n'
            + "  plain: a-{{ source.metadata.annotations.a }}-z\n"
            + "  block: |-\n    {{ source.metadata.annotations.a }}{{ source.metadata.annotations.a }}\n"
            + "  # {{ source.metadata.annotations.a }}\n",
            with_annotation(value),
        )
        assert {key: twin["spec"][key] for key in ("single", "double", "plain", "block")} == {
            "single": {"name": f"a{value}"},
            "double": [f"{value}z"],
            "plain": f"a-{value}-z",
            "block": f"{value}{value}",
        }

    def test_numbers_within_a_text(self) -> None:
        """A number or a boolean stands within a text as JSON writes it."""
        assert render(f"{HEAD}spec: {{a: 'x-{{{{ 1 + 1 }}}}-{{{{ true }}}}'}}\n")["spec"]["a"] == "x-2-true"

    def test_mapping_within_a_text(self) -> None:
        """A mapping cannot stand within a text: the author meant something else."""
        error = broken(f"{HEAD}spec: {{a: 'x-{{{{ source }}}}'}}\n")
        assert "spec.a has a mapping within a text; only texts and numbers can stand there" in error.message

    def test_keys_before_methods(self) -> None:
        """A label called items is a label, not a method of Python's."""
        text = f"{HEAD}spec: {{a: {{{{ source.spec.template.metadata.labels.items }}}}}}\n"
        assert render(text)["spec"]["a"] == "a label"

    def test_names_of_ones_own(self) -> None:
        """What a template sets, in one branch only too, and the loop it is in, are names as well."""
        text = (
            "{% if pool == 'spot' %}{% set mine = 7 %}{% endif %}"
            f"{HEAD}spec:\n{{% for one in [4, 5] %}}  a{{{{ loop.index }}}}: {{{{ one }}}}\n{{% endfor %}}"
            "  own: {{ mine }}\n"
        )
        spec = render(text)["spec"]
        assert {key: spec[key] for key in ("a1", "a2", "own")} == {"a1": 4, "a2": 5, "own": 7}

    def test_yaml_without_surprises(self) -> None:
        """In a template `on` and dates are texts, as everybody expects."""
        spec = render(
            HEAD + "spec: {on: on, date: 2026-01-31, time: 12:30:45, octal: 0777, no: no, n: 1.50}\n"
        )["spec"]
        spec = {key: spec[key] for key in ("on", "date", "time", "octal", "no", "n")}
        assert spec == {
            "on": "on",
            "date": "2026-01-31",
            "time": "12:30:45",
            "octal": "0777",
            "no": "no",
            "n": 1.5,
        }

    def test_source_stays(self) -> None:
        """Rendering changes nothing in what it was given."""
        before = copy.deepcopy(SOURCE)
        Renderer(read_template_sets(bundled_path("templates")), PRESETS).render(SOURCE, Pool.SPOT, Policy())
        assert before == SOURCE

    def test_huge_annotation(self) -> None:
        """The largest annotation that Kubernetes takes (256 KiB in all) passes through."""
        source = copy.deepcopy(SOURCE)
        source["spec"]["template"]["metadata"]["annotations"] = {"a": "x\n" * 131_072}  # type: ignore[index]
        result = Renderer(read_template_sets(bundled_path("templates")), PRESETS)
        manifest = json.loads(result.render(source, Pool.SPOT, Policy()).manifest_json)
        assert manifest["spec"]["template"]["metadata"]["annotations"] == {"a": "x\n" * 131_072}


class TestBrokenTemplates:
    @pytest.mark.parametrize(
        ("text", "line", "what"),
        [
            ("a: 1\nb: {{ source. }}\n", 2, "expected name or number (Jinja2 syntax)"),
            ("{% if x %}\n", 1, "Unexpected end of template"),
            (
                "a: 1\nb: {{ polcy.soak_s }}\n",
                2,
                "'polcy' is undefined; the variables are source, twin, pool, policy",
            ),
            (
                "a: {{ pool }}\n\nb: {{ twin.nmae }}\n",
                3,
                '"nmae" is not there (there is: labels, name, pod_labels); may it be missing, add',
            ),
            ("a: {{ source.spec.strategy | merge({}) }}\n", 1, '"strategy" is not there'),
            ("a: {{ source.spec.replicas }}\n", 1, '"replicas" is not there'),
            ('a: {{ {"b": [twin.nmae]} }}\n', 1, '"nmae" is not there (there is: labels, name'),
            ('{% set a = twin | merge({"b": [twin.nmae]}) %}\na: {{ a }}\n', 1, '"nmae" is not there'),
            ("a:\n- {{ pool | tojson }}\n", 2, "No filter named 'tojson'"),
            ("a: {{ pool | random }}\n", 1, "No filter named 'random'"),
            ("a: {{ pool | merge }}\n", 1, "merge() missing 1 required positional argument"),
            (
                "\na: {{ pool.upper() }}\n",
                2,
                "a template calls nothing; write a filter",
            ),
            (
                "a: {{ pool.upper }}\n",
                1,
                "gives a builtin_function_or_method, which is not JSON",
            ),
            ("a: {{ ''.__class__ }}\n", 1, "access to attribute '__class__' of 'str' object is unsafe"),
            ("a: {{ range(3) }}\n", 1, "'range' is undefined"),
            ('a: {{ "x" * 1000000000 }}\n', 1, "* is for numbers only"),
            ("a: {{ 9 ** 999999999 }}\n", 1, "** for none"),
            ("a: {{ 1 / 0 }}\n", 1, "division by zero"),
            ("a: {{ {1: 2} }}\n", 1, '"1" is a key and not a text; write it in quotes'),
            ("a: {{ {} | require_node_affinity([]) }}\n", 1, "no node selector term is given"),
            ("\n{% include 'x' %}\n", 2, "{% include %} is not allowed; use if, for, and set with `=`"),
            ("{% filter trim %}a{% endfilter %}\n", 1, "{% filter %} is not allowed"),
            ("{% set a %}b{% endset %}\n", 1, "{% set %} ... {% endset %} is not allowed"),
            ("{% macro a() %}b{% endmacro %}\n", 1, "{% macro %} is not allowed"),
            (
                "a: 1\n  b: {{ pool }}\n",
                2,
                'not YAML here: mapping values are not allowed in this context: "b: {{ }}"',
            ),
            ("a: 1\nb: 2\na: 3\n", 3, "the key a is there twice"),
            ("a: 1\n? [b]\n: 2\n", 2, "a key is a list or a mapping; only a text can be one"),
            ("{ {a: 1}: 2}\n", 1, "a key is a list or a mapping"),
            ("? " * 20_000, 1, "a key is a list or a mapping"),
            ("a: &x [1]\nb: *x\n", 1, "an alias (*) is not allowed"),
            ("a: !!python/object/apply:os.system [id]\n", 1, "could not determine a constructor for the tag"),
            ("a: 1\n---\nb: 2\n", 2, "expected a single document in the stream"),
            ("a: !!binary aGk=\n", None, "a is a bytes, which JSON does not know"),
            ("{{ pool }}: 1\nspot: 2\n", None, 'the output has the key "spot" twice'),
            ("1: 2\n", None, "the output has a key that is a number or boolean; keys are texts"),
            ("{{ source }}: 2\n", None, "the output has a key that is a mapping; keys are texts"),
            ("", None, "the output is null; it must be one mapping, the manifest of a Deployment"),
            ("- a\n", None, "the output is a list; it must be one mapping"),
            (
                "kind: Deployment\n",
                None,
                'the output is of kind "None/Deployment"; it must be apps/v1/Deployment',
            ),
            (
                "apiVersion: v1\nkind: Secret\n",
                None,
                'the output is of kind "v1/Secret"; it must be apps/v1/Deployment, as its source',
            ),
            (
                "{% for a in source.metadata.name %}{% for b in [1] * 9 %}{% endfor %}{% endfor %}",
                1,
                "* is for numbers only",
            ),
        ],
    )
    def test_message(self, text: str, line: int | None, what: str) -> None:
        """The message names the file, the line of the template where there is one, and what is wrong."""
        error = broken(text)
        assert what in error.message
        assert error.line == line
        where = f"default/deployment/spot.yaml.j2{f', line {line}' if line else ''}: "
        assert error.message.startswith(where)

    def test_text_too_long(self) -> None:
        """A template that writes without end is stopped."""
        thousand = "{% for a in source.metadata.annotations.a %}"
        text = f"{thousand}{thousand}#################{{% endfor %}}{{% endfor %}}"
        assert "more than 1048576 characters" in broken(text, with_annotation(["x"] * 1000)).message

    def test_manifest_too_large(self) -> None:
        """A twin that etcd would not take is refused here, with its size."""
        text = (
            HEAD
            + "spec: {a: '{{ source.metadata.annotations.a }}', b: {{ source.metadata.annotations.a }}}\n"
        )
        message = broken(text, with_annotation("x" * 600_000)).message
        assert "bytes; at most 1048576 are allowed" in message

    def test_value_too_deep(self) -> None:
        """A value nested beyond reason is an error of this template, not the end of the process."""
        deep: object = "x"
        for _ in range(5000):
            deep = [deep]
        assert (
            "recursion"
            in broken(HEAD + "a: {{ source.metadata.annotations.a }}\n", with_annotation(deep)).message
        )

    def test_other_kind(self) -> None:
        """A StatefulSet never gets a Deployment for a twin."""
        text = {"statefulset/spot.yaml.j2": HEAD}
        result = Renderer({"default": TemplateSet("default", text)}, PRESETS)
        with pytest.raises(TemplateError, match="it must be apps/v1/StatefulSet"):
            result.render(SOURCE | {"kind": "StatefulSet"}, Pool.SPOT, Policy())


def brought(
    text: str, *, name: str = "small", namespaces: tuple[str, ...] = ("*",), faults: tuple[str, ...] = ()
) -> TemplateSet:
    """Return a set as a ConfigMap brings it, with this spot template."""
    return TemplateSet(name, {"deployment/spot.yaml.j2": text}, namespaces, f"home/{name}", faults)


class TestTemplateSets:
    def test_unknown_set(self) -> None:
        """A set that is not there is named, with the nearest that is."""
        with pytest.raises(SplitterError, match='no template set "defualt"; did you mean "default"'):
            renderer(HEAD).render(SOURCE, Pool.SPOT, Policy(template_set="defualt"))

    def test_missing_file(self) -> None:
        """A set without a template for a pool says which file to write."""
        with pytest.raises(
            TemplateError, match=r'default/deployment/on-demand.yaml.j2: the template set "default"'
        ):
            renderer(HEAD).render(SOURCE, Pool.ON_DEMAND, Policy())

    def test_one_broken_set(self, tmp_path: Path) -> None:
        """A broken set holds its own workloads, and no others."""
        for name, text in (("good", HEAD), ("bad", "{{")):
            (tmp_path / name / "deployment").mkdir(parents=True)
            (tmp_path / name / "deployment" / "spot.yaml.j2").write_text(text)
        result = Renderer(read_template_sets(tmp_path), PRESETS)
        with pytest.raises(TemplateError):
            result.render(SOURCE, Pool.SPOT, Policy(template_set="bad"))
        assert result.render(SOURCE, Pool.SPOT, Policy(template_set="good")).hash

    def test_changed(self) -> None:
        """A set is used as it is at each rendering: changed, taken away, mended."""
        sets = {"small": brought(f"{HEAD}spec: {{a: 1}}\n")}
        collected, policy = Renderer(sets, PRESETS), Policy(template_set="small")
        first = collected.render(SOURCE, Pool.SPOT, policy)
        sets["small"] = brought(f"{HEAD}spec: {{a: 2}}\n")
        assert collected.render(SOURCE, Pool.SPOT, policy).hash != first.hash
        sets["small"] = brought(f"{HEAD}spec: {{a: {{{{ b }}}}}}\n")
        with pytest.raises(TemplateError, match=r"home/small, deployment\.spot\.yaml\.j2, line 3: 'b' is"):
            collected.render(SOURCE, Pool.SPOT, policy)
        del sets["small"]
        with pytest.raises(SplitterError, match='there is no template set "small"'):
            collected.render(SOURCE, Pool.SPOT, policy)
        sets["small"] = brought(f"{HEAD}spec: {{a: 1}}\n")
        assert collected.render(SOURCE, Pool.SPOT, policy) == first

    def test_not_allowed(self) -> None:
        """A set serves the namespaces that it names, and says how to be named; by default none."""
        policy = Policy(template_set="small")
        for namespaces, may in (
            (("team-*",), "may be used in the namespaces team-*"),
            ((), "names no namespace that"),
        ):
            result = Renderer({"small": brought(HEAD, namespaces=namespaces)}, PRESETS)
            with pytest.raises(SplitterError) as caught:
                result.render(SOURCE, Pool.SPOT, policy)
            assert caught.value.reason is Reason.TEMPLATE_INVALID
            assert may in caught.value.message
            assert "Add it to the annotation splitter.io/namespaces of ConfigMap home/small" in str(
                caught.value
            )

    @pytest.mark.parametrize(
        "text",
        [f"{{{{ {'(' * 5000}1{')' * 5000} }}}}", "{% if a %}" * 3000 + "{% endif %}" * 3000],
        ids=["brackets", "blocks"],
    )
    def test_nested_too_deeply(self, text: str) -> None:
        """A template that Python cannot hold is an error of its set, not the end of the process."""
        assert "it is nested too deeply to be read" in broken(text).message

    def test_no_templates(self, tmp_path: Path) -> None:
        """A folder without templates is an error at start, with what belongs there."""
        with pytest.raises(SplitterError, match=r"holds no templates .*; set templates_dir"):
            read_template_sets(tmp_path)


class TestHash:
    def test_stored(self) -> None:
        """The twin carries the hash of what was rendered, which the hash itself leaves out."""
        rendered = renderer(HEAD).render(SOURCE, Pool.SPOT, Policy())
        manifest = json.loads(rendered.manifest_json)
        assert manifest["metadata"]["annotations"] == {
            "splitter.io/rendered-hash": rendered.hash,
            "splitter.io/made-of": rendered.made_of,
        }
        assert rendered_hash(manifest) == rendered.hash

    def test_what_it_was_made_of(self) -> None:
        """The source's template and the user's wish to roll count; the template set and the counts do not."""
        made = renderer(HEAD).render(SOURCE, Pool.SPOT, Policy()).made_of
        other_set = renderer(HEAD + "  # the same, otherwise written\n").render(SOURCE, Pool.SPOT, Policy())
        assert other_set.made_of == made
        changed = copy.deepcopy(SOURCE)
        changed["spec"] |= {"replicas": 40, "paused": True}  # type: ignore[operator]
        assert renderer(HEAD).render(changed, Pool.SPOT, Policy(soak_s=9)).made_of == made
        changed["spec"] |= {"minReadySeconds": 9}  # type: ignore[operator]
        assert renderer(HEAD).render(changed, Pool.SPOT, Policy()).made_of != made
        for asked in (Policy(rollout_at="now"), Policy(restarted_at="now"), Policy(template_set="mine")):
            sets = renderer(HEAD, name=asked.template_set)
            assert sets.render(SOURCE, Pool.SPOT, asked).made_of != made

    def test_scaling_is_no_roll(self) -> None:
        """Another number of replicas, a pause or another revision renders the same twin."""
        result = Renderer(read_template_sets(bundled_path("templates")), PRESETS)
        changed = copy.deepcopy(SOURCE)
        changed["spec"] |= {"replicas": 40, "paused": True}  # type: ignore[operator]
        changed["metadata"] |= {"resourceVersion": "9", "generation": 3}  # type: ignore[operator]
        changed["metadata"]["annotations"] |= {"splitter.io/taken-over": "{}"}  # type: ignore[index]
        changed["status"] = {"replicas": 40}
        for pool in Pool:
            assert result.render(SOURCE, pool, Policy()) == result.render(changed, pool, Policy())

    def test_speed(self) -> None:
        """A thousand twins take about half a second."""
        result = Renderer(read_template_sets(bundled_path("templates")), PRESETS)
        result.render(SOURCE, Pool.SPOT, Policy())
        with cpu_below(1.0):
            for _ in range(100):
                result.render(SOURCE, Pool.SPOT, Policy())


class TestPeers:
    """The pods of a StatefulSet's twins by name, for those who list their peers."""

    def test_hosts(self) -> None:
        """The first names of each twin, behind the Service, joined as an application wants them."""
        text = (
            "apiVersion: apps/v1\nkind: StatefulSet\n"
            "metadata: {annotations: {peers: "
            '{{ (peers[0] | hosts(2) + peers[1] | hosts(1)) | join(",") }}}}\n'
            f"{POD}"
        )
        files = {"statefulset/spot.yaml.j2": text}
        spec = {**SOURCE["spec"], "serviceName": "db"} if isinstance(SOURCE["spec"], dict) else {}
        source = {**SOURCE, "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
        rendered = Renderer({"default": TemplateSet("default", files)}, PRESETS).render(
            source, Pool.SPOT, Policy()
        )
        annotations = json.loads(rendered.manifest_json)["metadata"]["annotations"]
        assert annotations["peers"] == "db-on-demand-0.db,db-on-demand-1.db,db-spot-1000.db"
