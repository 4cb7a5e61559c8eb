"""What the sandbox knows of certificates, without a server."""

from pathlib import Path

import pytest

from lab.sandbox.credentials import is_whole, write_private

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


def test_a_secret_is_never_readable_by_others(tmp_path: Path) -> None:
    """Neither through the file that had the name before, nor through a link that leads elsewhere."""
    file, elsewhere = tmp_path / "kubeconfig", tmp_path / "elsewhere"
    file.touch(mode=0o644)
    with file.open() as opened_before:
        write_private(file, "token")
        assert opened_before.read() == ""
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("token", 0o600)
    elsewhere.write_text("")
    file.unlink()
    file.symlink_to(elsewhere)
    write_private(file, "token")
    assert (elsewhere.read_text(), file.read_text(), file.is_symlink()) == ("", "token", False)
