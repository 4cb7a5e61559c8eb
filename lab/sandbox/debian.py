"""Gets programs that Go cannot build from Debian's packages, without root and without installing anything.

`real.build` takes nft and runc from here where PATH has none, the tests of the alert rules Prometheus:
`apt-get download` (with package lists of its own where the machine has none) and `dpkg -x`.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from lab.sandbox.errors import SandboxError
from lab.sandbox.toolchain import hide_hosts

_DEADLINE_S = 300.0


def unpack(home: Path, *packages: str) -> None:
    """Unpack packages into `home`, all of it or nothing; nothing is done when it is there.

    What the packages depend on is not taken. Raises SandboxError with the last words of apt-get.
    """
    if home.exists():
        return
    home.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{home.name}.partial-", dir=home.parent))
    (partial / "lists" / "partial").mkdir(parents=True)
    own = ("-o", f"Dir::State::Lists={partial / 'lists'}", "-o", f"Dir::Cache={partial}")
    try:
        try:
            _run(partial, "apt-get", "--quiet", "download", *packages)
        except subprocess.CalledProcessError:  # nobody has fetched the lists of packages on this machine
            _run(partial, "apt-get", "--quiet", *own, "update")
            _run(partial, "apt-get", "--quiet", *own, "download", *packages)
        for package in partial.glob("*.deb"):
            _run(partial, "dpkg", "-x", package.name, "unpacked")
        if not home.exists():  # another process may have been faster
            (partial / "unpacked").rename(home)
    except (OSError, subprocess.SubprocessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        raise SandboxError(
            f"Debian's packages could not be downloaded ({hide_hosts(str(said).strip())[-400:]})."
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=_DEADLINE_S)
