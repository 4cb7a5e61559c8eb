"""What a release consists of, built from a clean copy of a commit: the same commit gives the same bytes.

Nothing here asks the clock, the network or the folder it happens to stand in: all times are those of the
commit. The image is built elsewhere, from the context that is made here.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import yaml

from release import sbom
from release.archives import Content, below, gzipped, tar
from release.errors import ReleaseError
from release.versions import Version, current

SUMS = "SHA256SUMS"
IMAGE = "splitter"
_CHART = "manifests/helm/splitter"
_DEADLINE_S = 300.0


def build(tree: Path, into: Path, *, epoch: int, image: str = IMAGE) -> list[str]:
    """Build every artifact of a tree into an empty folder and return their names, the sums' last.

    `image` is where the image will be pulled from, without a tag: manifests and chart name it. Raises
    ReleaseError when something cannot be built.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/:-]*[a-z0-9]", image):
        raise ReleaseError(f"'{image}' is no name of an image: name registry and path, without a tag.")
    version = current(tree)
    _packages(tree, into, epoch)
    made: dict[str, bytes] = {
        f"splitter-image-{version}.tar": tar(_context(tree), epoch=epoch),
        f"splitter-chart-{version}.tgz": gzipped(tar(chart(tree, image), epoch=epoch), epoch=epoch),
        f"splitter-crds-{version}.yaml": (tree / "manifests/crd.yaml").read_bytes(),
        f"splitter-manifests-{version}.yaml": manifests(tree, version, image).encode(),
        f"splitter-sbom-{version}.cdx.json": _sbom(tree, version, epoch).encode(),
    }
    for name, content in made.items():
        (into / name).write_bytes(content)
    names = sorted(path.name for path in into.iterdir())
    sums = "".join(f"{hashlib.sha256((into / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (into / SUMS).write_text(sums, encoding="utf-8")
    return [*names, SUMS]


def _packages(tree: Path, into: Path, epoch: int) -> None:
    """Build wheel and sdist, by the locked build backend and without an environment of the user's."""
    answer = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", into],
        cwd=tree,
        env={
            "PATH": os.environ.get("PATH", os.defpath),
            "SOURCE_DATE_EPOCH": str(epoch),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=_DEADLINE_S,
        check=False,
    )
    if answer.returncode != 0:
        raise ReleaseError(
            f"hatchling cannot build the packages: mend what it says.\n{answer.stderr.strip()}"
        )


def _context(tree: Path) -> dict[str, Content]:
    """Return what the Dockerfile may copy, which .dockerignore names, and the two files themselves."""
    lines = (tree / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    if rules[0] != "*":
        raise ReleaseError(
            ".dockerignore does not begin with '*': ignore all, then name what the image needs."
        )
    names = {rule[1:] for rule in rules if rule.startswith("!")} | {"Dockerfile", ".dockerignore"}
    values = below(tree, follow=False)
    return {name: content for name, content in values.items() if name in names or name.split("/")[0] in names}


def chart(tree: Path, image: str) -> dict[str, Content]:
    """Return the files of the chart as Helm packages them: links followed, without what .helmignore names."""
    folder = tree / _CHART
    ignored = (folder / ".helmignore").read_text(encoding="utf-8").split()
    result = below(folder, follow=True)
    kept = {
        name: what for name, what in result.items() if not any(Path(name).match(rule) for rule in ignored)
    }
    values = (folder / "values.yaml").read_text(encoding="utf-8")
    kept["values.yaml"] = _replaced(values, f"  repository: {IMAGE} ", f"  repository: {image} ").encode()
    return {f"splitter/{name}": content for name, content in kept.items()}


def manifests(tree: Path, version: Version, image: str) -> str:
    """Return what `kubectl apply -k manifests` applies, in one file that needs no kustomize."""
    folder = tree / "manifests"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    if unknown := kustomization.keys() - {"apiVersion", "kind", "resources", "images"}:
        raise ReleaseError(
            f"manifests/kustomization.yaml has {min(unknown)}: teach release.artifacts what it does."
        )
    texts = [(folder / file).read_text(encoding="utf-8").strip() for file in kustomization["resources"]]
    text = "\n---\n".join(text.removeprefix("---\n") for text in texts)
    text = _replaced(text, f" image: {IMAGE}:{version}\n", f" image: {image}:{version}\n")
    return f"# splitter {version}: kubectl apply -f this file\n{text}\n"


def _replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise ReleaseError(
            f"'{old.strip()}' stands there {text.count(old)} times, not once: mend what names the image."
        )
    return text.replace(old, new)


def _sbom(tree: Path, version: Version, epoch: int) -> str:
    runtime = (tree / "requirements.lock").read_text(encoding="utf-8")
    tested = (tree / "requirements-dev.lock").read_text(encoding="utf-8")
    return sbom.document(version, runtime=runtime, tested=tested, epoch=epoch)
