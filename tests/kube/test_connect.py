"""How a client is made: from a kubeconfig, or in a pod."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from kube.server import TOKEN, Script, json, serve
from splitter.core.errors import SplitterError
from splitter.core.reasons import Reason
from splitter.kube.connect import connect
from splitter.kube.paths import ResourcePath


def kubeconfig(folder: Path, server: str) -> Path:
    """Write a kubeconfig with two contexts, the second one current."""
    path = folder / "config"
    path.write_text(
        f"""
apiVersion: v1
kind: Config
current-context: here
clusters:
- {{name: here, cluster: {{server: "{server}"}}}}
- {{name: there, cluster: {{server: "http://127.0.0.1:1"}}}}
users:
- {{name: me, user: {{token: {TOKEN}}}}}
contexts:
- {{name: here, context: {{cluster: here, user: me}}}}
- {{name: there, context: {{cluster: there, user: me}}}}
"""
    )
    return path


class TestConnecting:
    async def test_kubeconfig(self, tmp_path: Path) -> None:
        """Server and token come from the current context, for us and for kopf alike."""
        client = await connect(kubeconfig(tmp_path, "http://127.0.0.1:2"), None, 1.0, 4)
        credentials = await client.credentials()
        await client.close()
        assert client.server == credentials.server == "http://127.0.0.1:2"
        assert credentials.token == TOKEN

    async def test_another_context(self, tmp_path: Path) -> None:
        """A named context is used instead of the current one."""
        client = await connect(kubeconfig(tmp_path, "http://127.0.0.1:2"), "there", 1.0, 4)
        await client.close()
        assert client.server == "http://127.0.0.1:1"

    @pytest.mark.parametrize(
        ("break_it", "context"),
        [
            (Path.unlink, None),
            (lambda path: path.write_text("kind: Config\n"), None),
            (lambda _: None, "nowhere"),
            pytest.param(lambda path: path.write_text(""), None),
            pytest.param(lambda path: path.write_text("a: ["), None),
            pytest.param(lambda path: path.write_text("some text"), None),
        ],
        ids=["missing", "not one", "unknown context", "empty", "no YAML", "no mapping"],
    )
    async def test_unusable(
        self, tmp_path: Path, break_it: Callable[[Path], object], context: str | None
    ) -> None:
        """A kubeconfig that cannot be used is named, and no request is sent."""
        path = kubeconfig(tmp_path, "http://127.0.0.1:2")
        break_it(path)
        with pytest.raises(SplitterError, match="cannot be used") as caught:
            await connect(path, context, 1.0, 4)
        assert caught.value.reason is Reason.API_UNREACHABLE
        assert str(path) in str(caught.value)

    @pytest.mark.parametrize(
        ("without", "used"), [("", "http://proxy.example:3128"), ("10.0.0.1", None), ("*", None)]
    )
    async def test_proxy_of_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without: str, used: str | None
    ) -> None:
        """The proxy that the environment names is used, for kopf too, unless the server is excepted."""
        monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
        monkeypatch.setenv("no_proxy", without)
        client = await connect(kubeconfig(tmp_path, "https://10.0.0.1:6443"), None, 1.0, 4)
        credentials = await client.credentials()
        await client.close()
        assert credentials.proxy_url == used

    async def test_a_request_starts_no_thread(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The environment is looked at once; for each request it cost more than sending it."""
        async with serve(Script().then(json({"gitVersion": "v1.36.3"})).answer) as address:
            client = await connect(kubeconfig(tmp_path, address), None, 5.0, 4)
            monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", None)
            assert await client.get(ResourcePath("/version")) == {"gitVersion": "v1.36.3"}
            await client.close()

    async def test_no_credentials(self) -> None:
        """Without a kubeconfig and outside a pod there is nothing to connect with."""
        with pytest.raises(SplitterError, match="there are no credentials"):
            await connect(None, None, 1.0, 4)
