"""Which Kubernetes the sandbox runs: the pinned one, or any other that SPLITTER_KUBERNETES names.

`build` asks for the version and, for one that is not pinned, for a Go module that builds it. Such a module is
derived from Kubernetes' own go.mod: what lies in its staging folders there is published as modules of the
same minor and patch version. Its dependencies are not pinned by a go.sum of ours; Go's checksum database
vouches for them. Nothing is built here.
"""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lab.sandbox.errors import SandboxError
from lab.sandbox.toolchain import hide_hosts

PINNED = "1.36.3"  # as in controlplane/go.mod
VARIABLE = "SPLITTER_KUBERNETES"
_KUBERNETES = "k8s.io/kubernetes"
_STAGING = "./staging/"


def kubernetes_version(environment: Mapping[str, str] = os.environ) -> str:
    """Return the version to run, such as `1.33.13`.

    Raises SandboxError for anything but three numbers: a minor version alone would mean another one every
    month.
    """
    asked = environment.get(VARIABLE, "").removeprefix("v") or PINNED
    if not re.fullmatch(r"1\.\d{1,3}\.\d{1,3}", asked):
        raise SandboxError(
            f"{VARIABLE}={asked!r} is no version of Kubernetes. Name all three numbers, for instance 1.33.13,"
            f" or unset it for {PINNED}."
        )
    return asked


def derived_go_mod(version: str, go: str, go_line: str, directory: Path) -> str:
    """Return the go.mod of a module that can import Kubernetes' commands; `directory` may be written to.

    `go_line`: the language version, as in `go 1.26.0`. Raises SandboxError when there is no such version, or
    no network.
    """
    (directory / "go.mod").write_text(f"module scratch\n\n{go_line}\n")
    module = f"{_KUBERNETES}@v{version}"
    module_info = json.loads(_ask([go, "mod", "download", "-json", module], version, directory))
    own = json.loads(_ask([go, "mod", "edit", "-json", module_info["GoMod"]], version, directory))
    published = f"v0.{version.partition('.')[2]}"
    replaced = [one["Old"]["Path"] for one in own["Replace"] if one["New"]["Path"].startswith(_STAGING)]
    lines = (
        "module splitter.io/sandbox/controlplane",
        go_line,
        f"require {_KUBERNETES} v{version}",
        *(f"replace {path} => {path} {published}" for path in replaced),
    )
    return "\n".join(lines) + "\n"


def _ask(command: list[str], version: str, directory: Path) -> str:
    answer = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        # With -json, `go mod download` tells its error on standard output.
        complaint = hide_hosts((answer.stderr.strip() or answer.stdout.strip())[-600:])
        raise SandboxError(
            f"Kubernetes {version} cannot be had: {complaint}. Look whether there is such a version (the tags"
            f" of {_KUBERNETES}), and at the network; unset {VARIABLE} for the pinned {PINNED}."
        )
    return answer.stdout
