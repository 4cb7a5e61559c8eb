"""Writes docs/reference/settings.md, of the fields of the settings."""

from typing import Final

from splitter.settings import Settings
from splitter.settings.loading import default_of, must_be


def settings_reference() -> str:
    """Return docs/reference/settings.md: every setting, from its field."""
    rows = [_row(name, field.description or "") for name, field in Settings.model_fields.items()]
    return "\n".join((_HEAD, *rows, ""))


def _row(name: str, description: str) -> str:
    default = default_of(name)
    return f"| `{name}` | {must_be(name)} | {f'`{default}`' if default else ''} | {description} |"


_HEAD: Final = """\
# Settings

<!-- Written by tests/settings_reference.py. To write it anew:
     SPLITTER_REGENERATE=1 pytest tests/settings/test_settings.py -->

What holds for one installation. Written in a YAML file that `splitter run --settings FILE` names, or in the
environment: `soak_s: 300` in the file is `SPLITTER_SOAK_S=300` there. The environment wins over the file, the
file over the defaults. Times are in seconds (`_s`).

splitter reads them once, at its start, and does not start with an unknown name or a bad value: it says which,
and what to write. What differs from workload to workload is an [annotation](annotations.md).

A Service whose name begins with `splitter` makes Kubernetes put variables such as `SPLITTER_SERVICE_HOST`
into the environment of pods beside it. They are recognised and left alone.

| setting | value | default | what it does |
|---|---|---|---|"""
