"""The certificate of the metrics, as a mounted Secret has it, and whose clients are answered.

Whoever renews it (cert-manager, for instance) writes the files anew; connections made from then on have the
new one. `serving` uses it.
"""

import asyncio
import logging
import ssl
from pathlib import Path

logger = logging.getLogger("splitter.serving")

_LOOK_S = 30.0


class Certificate:
    """`tls.crt` and `tls.key` of a folder; with `client_ca`, clients show a certificate of that authority."""

    def __init__(self, folder: Path, client_ca: Path | None = None, look_s: float = _LOOK_S) -> None:
        """Raise OSError (of which ssl's errors are) when a file is not there or is none."""
        self._files = (folder / "tls.crt", folder / "tls.key")
        self._look_s = look_s
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        if client_ca is not None:
            self.context.load_verify_locations(client_ca)
            self.context.verify_mode = ssl.CERT_REQUIRED
        self._read()

    def _read(self) -> None:
        self._of = self._written()
        self.context.load_cert_chain(*self._files)

    def _written(self) -> list[int]:
        return [file.stat().st_mtime_ns for file in self._files]

    async def follow(self) -> None:
        """Read the files again whenever they have changed, until cancelled; a bad pair is told, not used."""
        while True:
            await asyncio.sleep(self._look_s)
            try:
                if self._written() != self._of:
                    self._read()
                    logger.info("the certificate of the metrics was read anew from %s", self._files[0].parent)
            except OSError as error:
                logger.warning("the certificate of the metrics stays as it was: %s", error)
