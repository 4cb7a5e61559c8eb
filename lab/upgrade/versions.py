"""Versions of splitter, and which of them looks after the cluster now."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab import checkout
from lab.fixtures.controller import SHORT, Controller
from lab.fixtures.placed import PLACES
from lab.sandbox import Sandbox
from lab.sandbox.errors import ApiError
from lab.sandbox.waiting import wait_until
from lab.upgrade.launcher import FOLDER

LAUNCHER = Path(__file__).with_name("launcher.py")
POLICIES = ("admission/own-account.yaml", "admission/placement.yaml")
MANIFESTS = ("crd.yaml", "rbac.yaml", "placeholder.yaml", *POLICIES)
CRDS = ("crd/splits.splitter.io", "crd/placements.splitter.io")


@dataclass(frozen=True, slots=True)
class Version:
    """Manifests, and the code that goes with them; no `code`: that of this checkout."""

    name: str
    manifests: Path
    code: Path | None = None

    @classmethod
    def of(cls, name: str, checkout: Path) -> "Version":
        """Return the version of another checkout."""
        return cls(name, checkout / "manifests", checkout)

    def settings(self) -> Mapping[str, str]:
        """Return the short times of the tests, as far as this version knows them."""
        if self.code is None:
            return SHORT
        asked = "from splitter.settings.loading import PLACES, variable; print(*map(variable, PLACES))"
        known = subprocess.run(
            [sys.executable, "-c", asked],
            cwd=self.code,
            env={**os.environ, "PYTHONPATH": str(self.code)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        return {name: value for name, value in SHORT.items() if f"SPLITTER_{name}" in known}


NOW = Version("now", checkout.MANIFESTS)


class Installation:
    """The one version that is installed; another takes its place as `kubectl apply` and a rollout do it."""

    def __init__(self, sandbox: Sandbox, home: Path) -> None:
        self._sandbox = sandbox
        self._home = home
        self._controller: Controller | None = None
        self._logs: list[Controller] = []

    @property
    def controller(self) -> Controller:
        """Return the one that runs. Raises AssertionError when none does."""
        assert self._controller is not None
        return self._controller

    def logged(self) -> int:
        """Return how long the log is, in bytes."""
        return self._controller.logged() if self._controller is not None else 0

    def said(self, after: int = 0) -> str:
        """Return what all that have run have logged; `after` is about the one that runs."""
        del after
        return "".join(one.said() for one in self._logs)

    def check(self) -> None:
        """Raise SandboxError when it should run and does not."""
        if self._controller is not None:
            self._controller.check()

    def apply(self, version: Version) -> None:
        """Apply a version's manifests, whatever runs."""
        names = [name for name in MANIFESTS if PLACES or "placement" not in name]
        for file in (version.manifests / name for name in names):
            if file.exists():
                self._sandbox.kubectl("apply", "-f", str(file))
        self._sandbox.kubectl("wait", "--for=condition=Established", "--timeout=60s", *CRDS)
        wait_until(self._is_served, what="the changed CRDs to be served", deadline_s=60)

    def _is_served(self) -> bool:
        """Whether the API server answers for our kinds: after a change of a CRD it does not for a moment."""
        try:
            for kind in ("splits", "placements"):
                self._sandbox.api.get(f"/apis/splitter.io/v1alpha1/{kind}")
        except ApiError as refusal:
            if refusal.reason != "TooManyRequests":
                raise
            return False
        return True

    def run(self, version: Version) -> None:
        """Apply a version's manifests beside the running one, then run it in that one's place."""
        self.apply(version)
        self.stop()
        account = self._sandbox.service_account_kubeconfig("splitter-system", "splitter")
        home = self._home / f"{len(self._logs)}-{version.name}"
        home.mkdir(parents=True)
        launched_with = {FOLDER: str(version.code), "PYTHONPATH": str(version.code or checkout.ROOT)}
        self._controller = Controller(
            account,
            home,
            version.settings(),
            launcher=LAUNCHER if version.code else None,
            reported=launched_with,
        )
        self._logs.append(self._controller)
        self._controller.start()

    def stop(self) -> None:
        """Stop what runs, as a rollout does."""
        if self._controller is not None:
            self._controller.stop()
        self._controller = None

    def end(self) -> None:
        """End whatever is left of it."""
        for one in self._logs:
            one.end()
