"""What splitter is made of, for machines: CycloneDX 1.6 in JSON, from the lock files alone.

`requirements.lock` says what is installed, with the digest of every file that pip may take for it;
`requirements-dev.lock` says who asks for it. The document names no registry, as the locks do not.
"""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from release.versions import Version

_BLOCK = re.compile(r"^(?=[a-z0-9])", re.MULTILINE)
_PIN = re.compile(r"([a-z0-9._-]+)==([^\s;\\]+)(?: ; ([^\\\n]+?))? \\\n")
_OURS = "splitter (pyproject.toml)"
# Names of documents are made of this and of what they are about, so that each has one name for ever.
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "splitter.io/sbom")


@dataclass(frozen=True, slots=True)
class Pin:
    """A locked package: its digests, where it is needed (a marker, or nothing), who asks for it."""

    name: str
    version: str
    marker: str
    digests: tuple[str, ...]
    asked_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Return its package URL, which names a kind of package and no address."""
        return f"pkg:pypi/{re.sub(r'[-_.]+', '-', self.name)}@{self.version}"


def pins(lock: str) -> list[Pin]:
    """Read a lock file."""
    return [_pin(block) for block in _BLOCK.split(lock) if "==" in block]


def _pin(block: str) -> Pin:
    match = _PIN.match(block)
    if match is None:
        raise ValueError(f"not a pin of a lock file: {block.splitlines()[0]}")
    name, version, marker = match.groups(default="")
    asked = re.findall(r"^ +# (?:via|  ) ?(\S.*)$", block, re.MULTILINE)
    digests = re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
    return Pin(name, version, marker, tuple(sorted(digests)), tuple(asked))


def document(version: Version, *, runtime: str, tested: str, epoch: int) -> str:
    """Return the document about this version, from the text of the runtime lock and of the tested one."""
    packages = pins(runtime)
    askers = {pin.name: pin.asked_by for pin in pins(tested)}
    ours = f"pkg:generic/splitter@{version}"
    made = datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z")
    root = {"type": "application", "bom-ref": ours, "name": "splitter", "version": str(version), "purl": ours}
    licence = {"licenses": [{"license": {"id": "Apache-2.0"}}]}
    content = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"timestamp": made, "component": {**root, **licence}},
        "components": [_component(pin) for pin in packages],
        "dependencies": list(_dependencies(ours, packages, askers)),
    }
    serial = uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))
    return json.dumps({**content, "serialNumber": f"urn:uuid:{serial}"}, indent=2, sort_keys=True) + "\n"


def _component(pin: Pin) -> dict[str, object]:
    marker = {"properties": [{"name": "splitter:marker", "value": pin.marker}]} if pin.marker else {}
    return {
        "type": "library",
        "bom-ref": pin.purl,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.purl,
        "hashes": [{"alg": "SHA-256", "content": digest} for digest in pin.digests],
        **marker,
    }


def _dependencies(
    ours: str, packages: list[Pin], askers: dict[str, tuple[str, ...]]
) -> Iterator[dict[str, object]]:
    for asker, ref in [(_OURS, ours), *((pin.name, pin.purl) for pin in packages)]:
        needed = sorted(pin.purl for pin in packages if asker in askers[pin.name])
        yield {"ref": ref, **({"dependsOn": needed} if needed else {})}
