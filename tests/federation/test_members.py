"""How a member is joined."""

import base64
from pathlib import Path

from lab.federation.members import secret_of
from lab.sandbox.credentials import write_kubeconfig


def test_the_secret_of_a_member(tmp_path: Path) -> None:
    """Karmada reads a token and a certificate from it."""
    authority = tmp_path / "ca.crt"
    authority.write_text("a certificate")
    file = write_kubeconfig(
        tmp_path / "kubeconfig", url="https://127.0.0.1:1", ca_file=authority, user="karmada", token="a-token"
    )
    decoded = {name: base64.b64decode(text).decode() for name, text in secret_of(file).items()}
    assert decoded == {"token": "a-token", "caBundle": "a certificate"}
