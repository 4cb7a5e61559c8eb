"""Writes docs/reference/settings.md, of the fields of the settings."""

from typing import Final

from splitter.settings import Settings, TuningSettings
from splitter.settings.loading import PLACES, TUNING, Place, default_of, in_file, must_be


def settings_reference() -> str:
    """Return docs/reference/settings.md: every setting, from its field."""
    own = [_row(place) for place in PLACES if place[0] != TUNING]
    return "\n".join((_HEAD, *own, _TUNING, *(_row(place) for place in PLACES if place[0] == TUNING), ""))


def _row(place: Place) -> str:
    default, model = default_of(place), Settings if len(place) == 1 else TuningSettings
    field = model.model_fields[place[-1]]
    written = f"`{default}`" if default else ""
    return f"| `{in_file(place)}` | {must_be(place)} | {written} | {field.description} |"


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

_TUNING: Final = """
## Tuning

Timings that suit most clusters. They are no promise: a release may change their defaults, meaning or names,
and says so in its changelog. `tuning.calm_s` is `calm_s` below `tuning` in the file, and
`SPLITTER_TUNING_CALM_S` in the environment, which wins over the file setting by setting:

```yaml
soak_s: 300
tuning:
  soak_max_s: 1800
  calm_s: 600
```

| setting | value | default | what it does |
|---|---|---|---|"""
