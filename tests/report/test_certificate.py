"""Metrics over TLS: with the certificate of now, and, where that is asked for, for certified clients only."""

import asyncio
import os
import shutil
import ssl
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

import pytest

from lab.sandbox.waiting import wait_until
from splitter.report import scrapes
from splitter.report.certificate import Certificate

# Self-signed, so it is an authority too: it vouches for itself, as a server and as a client.
PAIR = Path(__file__).parents[1] / "worthless.pem"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder as a Secret of a certificate is mounted."""
    for name in ("tls.crt", "tls.key"):
        shutil.copyfile(PAIR, tmp_path / name)
    return tmp_path


def scraped(port: int, *, certified: bool = False) -> str:
    """Return what a scrape over TLS brings. Raises OSError when it is not answered."""
    context = ssl.create_default_context(cafile=str(PAIR))
    if certified:
        context.load_cert_chain(PAIR)
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/metrics", timeout=10, context=context) as answer:
        return str(answer.read().decode())


class TestScrape:
    def test_over_tls(self, folder: Path) -> None:
        """Who trusts the certificate is answered; in the clear nobody is."""
        port = scrapes.serve(0, folder)
        assert "process_max_fds" in scraped(port)
        with pytest.raises((OSError, HTTPException)):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10)

    def test_by_certified_clients_only(self, folder: Path) -> None:
        """Who shows no certificate of the authority gets nothing."""
        port = scrapes.serve(0, folder, PAIR)
        assert "process_max_fds" in scraped(port, certified=True)
        with pytest.raises(OSError, match=r"."):
            scraped(port)


class TestFiles:
    @pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_that_are_none(self, folder: Path, name: str, content: str | None) -> None:
        """It is said at the start, and nothing is served in the clear instead."""
        (folder / name).unlink() if content is None else (folder / name).write_text(content)
        with pytest.raises(OSError, match=r"."):
            scrapes.serve(0, folder)

    async def test_are_read_anew(self, folder: Path, caplog: pytest.LogCaptureFixture) -> None:
        """A renewed certificate is used without a restart; a broken one is told, once, and not used."""
        certificate = Certificate(folder, look_s=0.01)
        caplog.set_level("INFO")
        following = asyncio.create_task(certificate.follow())
        try:
            (folder / "tls.key").write_text("broken")
            await _said(caplog, "stays as it was")
            shutil.copyfile(PAIR, folder / "tls.key")
            os.utime(folder / "tls.key", ns=(1, 1))
            await _said(caplog, "was read anew")
        finally:
            following.cancel()
        assert caplog.text.count("stays as it was") == 1


async def _said(caplog: pytest.LogCaptureFixture, words: str) -> None:
    await asyncio.to_thread(wait_until, lambda: words in caplog.text, what=words, deadline_s=10)
