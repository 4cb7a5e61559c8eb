"""Writes the images of real nodes: one static program, packed as an OCI layout for `ctr images import`.

`real.build` calls it once. No registry is asked, and the same program gives the same bytes.
"""

import gzip
import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PAUSE = "sandbox.splitter.io/pause:1"
WEB = ("sandbox.splitter.io/web:1", "sandbox.splitter.io/web:2")  # they differ in what they answer

_MEDIA = "application/vnd.oci.image"
_GO_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
_FILES = {"etc/passwd": "root:x:0:0::/:/\n", "etc/group": "root:x:0:\n"}


def write(path: Path, program: Path) -> None:
    """Write all images into one tar; `program` is the guest, which each of them calls by another name."""
    raw = _layer(program)
    layer = gzip.compress(raw, 1, mtime=0)
    blobs = {_name(layer): layer}
    manifests = []
    for name in (PAUSE, *WEB):
        version = name.rpartition(":")[2]
        entry = "pause" if name == PAUSE else "web"
        config = _json(
            {
                **_platform(),
                "config": {"Entrypoint": [f"/bin/{entry}"], "Env": ["PATH=/bin", f"VERSION={version}"]},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_name(raw)}"]},
            }
        )
        manifest = _json(
            {
                "schemaVersion": 2,
                "mediaType": f"{_MEDIA}.manifest.v1+json",
                "config": _descriptor(config, "config.v1+json"),
                "layers": [_descriptor(layer, "layer.v1.tar+gzip")],
            }
        )
        blobs |= {_name(config): config, _name(manifest): manifest}
        named = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": version}
        described = _descriptor(manifest, "manifest.v1+json")
        manifests.append({**described, "platform": _platform(), "annotations": named})
    index = _json({"schemaVersion": 2, "manifests": manifests})
    files = {"oci-layout": _json({"imageLayoutVersion": "1.0.0"}), "index.json": index}
    with tarfile.open(path, "w") as tar:
        for name, content in (files | {f"blobs/sha256/{name}": blob for name, blob in blobs.items()}).items():
            _add(tar, name, content)


def _layer(program: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name in ("bin", "etc", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name, text in _FILES.items():
            _add(tar, name, text.encode())
        _add(tar, "bin/guest", program.read_bytes(), 0o755)
        for name in ("pause", "web"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "guest"
            tar.addfile(link)
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _descriptor(blob: bytes, kind: str) -> dict[str, Any]:
    return {"mediaType": f"{_MEDIA}.{kind}", "digest": f"sha256:{_name(blob)}", "size": len(blob)}


def _platform() -> dict[str, str]:
    machine = platform.machine()
    return {"architecture": _GO_NAMES.get(machine, machine), "os": "linux"}


def _name(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _json(content: Mapping[str, object]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
