"""The chart's values, without Helm: what may be written is what splitter reads."""

import json
import os
import re
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from chart.values_table import Value, values, with_table
from splitter import __version__
from splitter.bundled import bundled_path
from splitter.settings import Settings, TuningSettings

CHART = bundled_path("manifests/helm/splitter")
SCHEMA = CHART / "values.schema.json"
# Each follows from another value, or from what is fixed in manifests/deployment.yaml.
NOT_VALUES = {
    "kubeconfig",
    "context",
    "watch_namespaces",
    "own_namespace",
    "templates_dir",
    "http_port",
    "metrics_port",
    "metrics_tls",
    "metrics_client_ca",
    "estimator_cluster",  # the chart installs no estimator
    "estimator_port",
    "estimator_tls",
    "estimator_client_ca",
}
KEPT = {
    "description",
    "type",
    "items",
    "enum",
    "pattern",
    "minLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
}


def _value(field: dict[str, Any]) -> dict[str, Any]:
    """Return what a value has to be where None is the default: nobody writes that, but leaves it out."""
    return next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), {})


def settings_schema() -> dict[str, Any]:
    """Return the schema of `settings`, from the very classes that read them in the pod."""
    schema = _block(Settings, "docs/reference/settings.md; watch_namespaces is watchNamespaces here.")
    schema["properties"]["tuning"] = _block(TuningSettings, Settings.model_fields["tuning"].description)
    return schema


def _block(model: type[BaseModel], description: str | None) -> dict[str, Any]:
    properties = {
        name: {key: value for key, value in {**field, **_value(field)}.items() if key in KEPT}
        for name, field in model.model_json_schema()["properties"].items()
        if name not in NOT_VALUES
    }
    return {
        "type": "object",
        "description": description,
        "additionalProperties": False,
        "properties": properties,
    }


class TestSchema:
    def test_knows_the_settings(self) -> None:
        """A setting is a value of the chart, with the same bounds, and nothing else is."""
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        if os.environ.get("SPLITTER_REGENERATE"):
            schema["properties"]["settings"] = settings_schema()
            SCHEMA.write_text(json.dumps(schema, indent=2) + "\n", encoding="utf-8")
        assert schema["properties"]["settings"] == settings_schema(), (
            "write it anew: SPLITTER_REGENERATE=1 pytest tests/chart"
        )

    def test_names_real_settings(self) -> None:
        """What is left out of the values is a setting that there is."""
        assert set(Settings.model_fields) >= NOT_VALUES

    def test_knows_each_value(self) -> None:
        """Every value that is in values.yaml is in the schema, and the other way round."""
        values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))["properties"]
        assert set(values) == set(schema) - {"global"}
        for name, value in values.items():
            if isinstance(value, dict) and "properties" in schema[name] and name != "settings":
                assert set(value) == set(schema[name]["properties"]), name

    def test_is_strict(self) -> None:
        """Every object says which fields it has, but for volumes of each kind, which Kubernetes judges."""
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        volume = schema["definitions"]["volume"]["properties"]
        open_ones = [json.dumps(one) for one in objects_of(schema) if "additionalProperties" not in one]
        kinds = [one for name, one in volume.items() if name != "name"]
        assert sorted(open_ones) == sorted(
            [json.dumps(schema["properties"]["global"]), *map(json.dumps, kinds)]
        )


def objects_of(schema: object) -> list[dict[str, Any]]:
    """Return every schema of an object within a schema."""
    if isinstance(schema, list):
        return [result for one in schema for result in objects_of(one)]
    if not isinstance(schema, dict):
        return []
    below = [result for one in schema.values() for result in objects_of(one)]
    kind = schema.get("type")
    return [schema, *below] if kind == "object" or (isinstance(kind, list) and "object" in kind) else below


class TestReadme:
    def test_has_the_values(self) -> None:
        """Its table is made from the comments of values.yaml."""
        readme = CHART / "README.md"
        text = readme.read_text(encoding="utf-8")
        if os.environ.get("SPLITTER_REGENERATE"):
            readme.write_text(with_table(text), encoding="utf-8")
            text = with_table(text)
        assert text == with_table(text), "write it anew: SPLITTER_REGENERATE=1 pytest tests/chart"

    def test_reads_comments_above_and_behind(self) -> None:
        """What stands behind a value is its own; what stands above is, where nothing stands behind."""
        text = (
            '# The group.\nimage:\n  # Above.\n  tag: ""\n  name: a # behind\n\n# Lost.\n\nlast: [] # end\n'
        )
        assert values(text) == [
            Value("image.tag", "", "Above."),
            Value("image.name", "a", "behind"),
            Value("last", [], "end"),
        ]

    def test_refuses_what_it_cannot_read(self) -> None:
        """A value over several lines would be left out silently."""
        with pytest.raises(ValueError, match="is no key"):
            values("image:\n  - name: a\n")


class TestChart:
    def test_is_of_this_version(self) -> None:
        """The image's tag is the chart's appVersion, which is splitter's own version."""
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
        assert chart["appVersion"] == __version__
        [image] = re.findall(
            r"image: splitter:(\S+)", bundled_path("manifests/deployment.yaml").read_text("utf-8")
        )
        assert image == __version__

    # Of monitoring the files are linked one by one: the wheel takes a folder only where it meets it first.
    @pytest.mark.parametrize(
        "link",
        [path for path in sorted((CHART / "files").rglob("*")) if path.is_symlink() or path.is_file()],
        ids=lambda link: link.name,
    )
    def test_has_no_manifest_of_its_own(self, link: Any) -> None:  # noqa: ANN401 (a Path)
        """Its files are the files of the kustomization."""
        assert link.is_symlink()
        assert link.resolve() == bundled_path(f"manifests/{link.relative_to(CHART / 'files')}")
