"""The settings, and their reference page."""

import os
from pathlib import Path

from settings_reference import settings_reference
from splitter.settings import Settings, TuningSettings

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "settings.md"


class TestReference:
    def test_up_to_date(self) -> None:
        """docs/reference/settings.md says what the fields say."""
        if os.environ.get("SPLITTER_REGENERATE"):
            REFERENCE.write_text(settings_reference(), encoding="utf-8")
        assert REFERENCE.read_text(encoding="utf-8") == settings_reference()

    def test_every_setting_is_described(self) -> None:
        """Each field has a sentence."""
        for name, field in {**Settings.model_fields, **TuningSettings.model_fields}.items():
            assert field.description, name
            assert field.description.endswith("."), name

    def test_no_name_is_in_both(self) -> None:
        """So a name in the wrong place says which place is the right one."""
        assert not Settings.model_fields.keys() & TuningSettings.model_fields.keys()
