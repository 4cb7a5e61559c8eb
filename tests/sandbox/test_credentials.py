"""What the sandbox knows of certificates, without a server."""

from pathlib import Path

import pytest

from splitter.sandbox.credentials import is_whole

WHOLE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def test_a_whole_certificate_is_told(tmp_path: Path) -> None:
    """One, or a chain of two, as the API server writes it."""
    for text in (WHOLE, WHOLE + WHOLE):
        file = tmp_path / "apiserver.crt"
        file.write_text(text)
        assert is_whole(file)


def test_one_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    """The server has not come that far."""
    assert not is_whole(tmp_path / "apiserver.crt")


@pytest.mark.parametrize("length", [0, 1, len(WHOLE) // 2, len(WHOLE) - 1])
def test_one_that_is_being_written_is_waited_for(tmp_path: Path, length: int) -> None:
    """The file is there before its content is: whoever reads it then trusts nobody."""
    file = tmp_path / "apiserver.crt"
    file.write_text(WHOLE[:length])
    assert not is_whole(file)
