"""An API server with one Split, on loopback, and a kubeconfig that leads there."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Thread
from typing import Any

from listening import Listening
from plugin.cli.one_split import split

SOURCE = {"kind": "Deployment", "metadata": {"annotations": {"splitter.io/on-demand-base": "2"}}}
NAMED = {"cluster": "c", "user": "u"}
SIGNS = "calm\x1b[2J\nshop/web  Steady\u202e"
HOSTILE: dict[str, Any] = {"state": SIGNS, "reason": SIGNS, "message": SIGNS, "guard": SIGNS}


class Server(BaseHTTPRequestHandler):
    """An API server with one Split, `shop/web`, and one Deployment that is not split, `shop/api`."""

    def do_GET(self) -> None:
        """Answer."""
        api = {"namespace": "bank", "name": "api", "uid": "1"}
        answers: dict[str, Any] = {
            "/version": {"gitVersion": "v1.36.3"},
            "/api/v1/namespaces": {"items": [{"metadata": {"name": name}} for name in ("bank", "shop")]},
            "/apis/apps/v1/deployments": {"items": [{"metadata": api}]},
            "/apis/apps/v1/statefulsets": {"items": []},
            "/apis/splitter.io/v1alpha1/splits": {"items": [split(), split("api", "bank")]},
            "/apis/splitter.io/v1alpha1/namespaces/shop/splits": {"items": [split()]},
            "/apis/splitter.io/v1alpha1/namespaces/default/splits": {"items": []},
            "/apis/splitter.io/v1alpha1/namespaces/evil/splits": {"items": [split("web", "evil", **HOSTILE)]},
            "/apis/apps/v1/namespaces/shop/deployments/web": SOURCE,
            "/apis/apps/v1/namespaces/evil/deployments/web": SOURCE,
            "/apis/apps/v1/namespaces/shop/deployments/api": {"metadata": {"name": "api"}},
        }
        raw = answers.get(self.path.partition("?")[0])
        self.send_response(200 if raw else 404)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(raw or {"reason": "NotFound", "message": "not there"}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's own name
        """Say nothing."""


@contextmanager
def serving(file: Path) -> Iterator[None]:
    """Serve until the end of the block, and write a kubeconfig for it."""
    server = Listening(("127.0.0.1", 0), Server)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    kubeconfig = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": NAMED}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    file.write_text(json.dumps(kubeconfig), encoding="utf-8")
    yield
    server.shutdown()
    thread.join()
    server.server_close()
