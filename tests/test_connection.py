"""The connection of a verb: to the cluster that kubectl would ask, and what that one says when it refuses."""

from pathlib import Path

import pytest
import yaml

from kube.server import Script, json, refusal, serve
from splitter.connection import connected
from splitter.exits import MendableError
from splitter.kube.paths import NODES


def kubeconfig(path: Path, **addresses: str) -> Path:
    """Write a kubeconfig with these contexts; the first one is the current one."""
    content = {
        "current-context": next(iter(addresses)),
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in addresses],
        "clusters": [{"name": name, "cluster": {"server": address}} for name, address in addresses.items()],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


class TestConnected:
    async def test_shows_the_servers_refusal_as_a_sentence(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of the file in KUBECONFIG the context that is named; a verb knows no better words than these."""
        script = Script().then(json({"gitVersion": "v1.36.3"}), refusal(403, "Forbidden", "you may not"))
        async with serve(script.answer) as address:
            file = kubeconfig(tmp_path / "config", here="http://127.0.0.1:1", there=address)
            monkeypatch.setenv("KUBECONFIG", str(file))
            with pytest.raises(MendableError, match=r"the API server answered: .*you may not"):
                async with connected(None, context="there") as (client, _):
                    await client.get(NODES)
        assert [asked.path for asked in script.asked] == ["/version", "/api/v1/nodes"]

    async def test_prefers_the_kubeconfig_that_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """To the settings' own, and that to KUBECONFIG."""
        script = Script().then(json({"gitVersion": "v1.36.3"}))
        async with serve(script.answer) as address:
            file = kubeconfig(tmp_path / "config", here=address)
            monkeypatch.setenv("KUBECONFIG", "/nowhere")
            async with connected(None, file) as (client, settings):
                assert client.server == address
                assert settings.kubeconfig is None
            monkeypatch.setenv("SPLITTER_KUBECONFIG", str(file))
            async with connected(None) as (client, _):
                assert client.server == address
