"""Archives of which each byte follows from what is in them: no clock, no account, no order of a disk."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

# A file's content, or where a link points.
Content = bytes | Path


def tar(files: Mapping[str, Content], *, epoch: int) -> bytes:
    """Return a tar of these files, by name, all of them root's and as old as `epoch` says."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.mtime, member.mode = epoch, 0o644
            if isinstance(content, Path):
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, content.as_posix(), 0o777
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def gzipped(content: bytes, *, epoch: int) -> bytes:
    """Return it compressed, with no name in it and the time that `epoch` says."""
    written = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=written, mode="wb", compresslevel=9, mtime=epoch) as archive:
        archive.write(content)
    return written.getvalue()


def below(folder: Path, *, follow: bool) -> dict[str, Content]:
    """Return the files below a folder by their path from there.

    A link is kept as it is, or with `follow` replaced by what it points to.
    """
    values: dict[str, Content] = {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink() and not follow:
            values[path.name] = path.readlink()
        elif path.is_dir():
            values |= {f"{path.name}/{name}": content for name, content in below(path, follow=follow).items()}
        else:
            values[path.name] = path.read_bytes()
    return values
