"""`--templates`: a folder stands for the one that travels with splitter, a file brings sets of its own."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from splitter.plugin.cli.template_sets import read_templates
from splitter.settings import Settings

LABELS = {"splitter.io/template-set": "enabled"}
ANNOTATIONS = {"splitter.io/namespaces": "shop"}
TEXTS = {f"deployment.{pool}.yaml.j2": "a: 1" for pool in ("on-demand", "spot")}


def written(folder: Path, *documents: dict[str, Any]) -> Path:
    """Return a file with these documents."""
    file = folder / "sets.yaml"
    file.write_text("\ufeff" + yaml.safe_dump_all(documents), encoding="utf-8")
    return file


def config_map(name: str = "mine", **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    """Return a ConfigMap with a template set."""
    metadata = {"name": name, "namespace": "home", "labels": LABELS, "annotations": ANNOTATIONS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": TEXTS, **fields}


class TestPath:
    def test_without_one_nothing_changes(self) -> None:
        """Nor does with a folder anything but where the sets are."""
        settings = Settings()
        assert read_templates(None, settings) == (settings, {})

    def test_of_a_folder(self, tmp_path: Path) -> None:
        """It is the settings' own from then on."""
        settings, sets = read_templates(tmp_path, Settings())
        assert (settings.templates_dir, sets) == (tmp_path, {})

    def test_of_nothing(self, tmp_path: Path) -> None:
        """The file is named by the error."""
        with pytest.raises(OSError, match=r"nowhere\.yaml"):
            read_templates(tmp_path / "nowhere.yaml", Settings())


class TestFile:
    def test_holds_sets_among_other_things(self, tmp_path: Path) -> None:
        """A Service, a ConfigMap of something else, a Deployment with such keys: none of them is one."""
        others: list[dict[str, Any]] = [
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a.txt": "b"}},
            config_map("deployment", kind="Deployment"),
            config_map("later", apiVersion="v2"),
        ]
        settings = Settings()
        same, sets = read_templates(written(tmp_path, *others, config_map(), config_map("more")), settings)
        assert same is settings
        assert {name: one.faults for name, one in sets.items()} == {"mine": (), "more": ()}
        assert sets["mine"].namespaces == ("shop",)

    @pytest.mark.parametrize(
        "fields",
        [
            {"metadata": {"name": "mine"}},  # not labelled yet, but with templates
            {"data": {}},  # labelled, but without any
            {"data": {}, "binaryData": {"deployment.spot.yaml.j2": "AA=="}},
            {"metadata": {"name": "mine", "labels": {**LABELS, "splitter.io/template-set": True}}},
            {"metadata": None, "data": {"deployment.spot.yaml.j2": 5}},
        ],
    )
    def test_with_what_is_meant_as_one_says_what_is_wrong(
        self, tmp_path: Path, fields: dict[str, Any]
    ) -> None:
        """In the controller's own words, and no traceback."""
        _, sets = read_templates(written(tmp_path, config_map(**fields)), Settings())
        (only,) = sets.values()
        assert only.faults

    def test_without_any_is_told(self, tmp_path: Path) -> None:
        """With what one is."""
        with pytest.raises(ValueError, match="holds no template set; one is a ConfigMap with the label"):
            read_templates(written(tmp_path, config_map(kind="Secret")), Settings())
