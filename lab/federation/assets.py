"""Finds what a Karmada control plane is made of, in a folder of ready-made files; says what is missing."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from lab.sandbox.errors import SandboxError

VARIABLE: Final = "KARMADA_ASSETS"
VERSION: Final = "1.18.2"
PROGRAMS: Final = (
    "karmada-aggregated-apiserver",
    "karmada-controller-manager",
    "karmada-descheduler",
    "karmada-scheduler",
    "karmada-webhook",
)
CRDS: Final = "_crds"
WEBHOOKS: Final = "webhook-configuration.yaml"
_LOOK: Final = (
    f"Karmada {VERSION} was tried. Its repository has {CRDS}/ in charts/karmada and {WEBHOOKS} in"
    " artifacts/deploy; the programs are those of its images"
)


@dataclass(frozen=True, slots=True)
class Assets:
    """A folder with everything that is needed."""

    folder: Path

    @classmethod
    def find(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return the folder that KARMADA_ASSETS names. Raises SandboxError with each file that is missing."""
        named = environment.get(VARIABLE, "")
        if not named:
            needed = ", ".join((*PROGRAMS, f"{CRDS}/", WEBHOOKS))
            raise SandboxError(f"{VARIABLE} is not set: name a folder with {needed}. {_LOOK}.")
        folder = Path(named).expanduser().resolve()
        missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
        files = (f"{CRDS}/kustomization.yaml", WEBHOOKS)
        missing += [name for name in files if not (folder / name).is_file()]
        if missing:
            raise SandboxError(f"{VARIABLE}={folder} has no {', '.join(missing)}. {_LOOK}.")
        return cls(folder)

    def program(self, name: str) -> Path:
        """Return one of the programs."""
        return self.folder / name

    @property
    def crds(self) -> Path:
        """Return the folder of the CustomResourceDefinitions, with a kustomization."""
        return self.folder / CRDS

    def webhooks(self, url: str, ca_bundle: str) -> str:
        """Return the configuration of its webhooks, which are at `url`."""
        text = (self.folder / WEBHOOKS).read_text(encoding="utf-8")
        return placed(text, url, ca_bundle)


def placed(text: str, url: str, ca_bundle: str) -> str:
    """Return a manifest of Karmada's whose webhooks are at `url`, and not behind a Service."""
    for service in ("karmada-webhook.karmada-system", "{{name}}.{{namespace}}"):
        text = text.replace(f"https://{service}.svc:443", url)
    return text.replace("{{caBundle}}", ca_bundle)
