"""Raw JSON to and from the sandbox's API server, typed just enough.

`fleet` writes nodes through it, `recorder` watches through it, tests create workloads through it. Objects
stay what they are on the wire: dicts. It knows paths and verbs, nothing about what the objects mean, and
never retries: a refusal is an answer.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import kubernetes.client
import urllib3

from lab.sandbox.credentials import kubelet
from lab.sandbox.errors import ApiError, SandboxError
from lab.sandbox.following import Follower, Tell

JsonObject = dict[str, Any]

_TIMEOUT_S = 30.0
_POOL = 32  # connections kept open; more threads than this only open short-lived ones
_FIRST_REFUSAL = 400
_NOT_FOUND = 404


class PatchKind(StrEnum):
    """The ways the API server merges a patch."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class Api:
    """An authenticated connection to one API server; safe to use from many threads.

    Paths are those of the wire: `/api/v1/nodes/spot-0`, `/apis/apps/v1/namespaces/shop/deployments`.
    Every method raises ApiError when the server refuses and SandboxError when it does not answer.
    """

    def __init__(self, url: str, ca_file: Path, token: str, *, kubelet_of: str = "") -> None:
        """Connect; `kubelet_of` a node: as its kubelet, by the right to impersonate that the token has."""
        configuration: Any = kubernetes.client.Configuration()
        configuration.host = url
        configuration.ssl_ca_cert = str(ca_file)
        configuration.api_key["authorization"] = token
        configuration.api_key_prefix["authorization"] = "Bearer"
        configuration.connection_pool_maxsize = _POOL
        configuration.proxy = None  # the environment's proxy has no business with loopback
        make_client: Any = kubernetes.client.ApiClient
        self.client: kubernetes.client.ApiClient = make_client(configuration)
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        if kubelet_of:
            user, group = kubelet(kubelet_of)
            self._headers |= {"Impersonate-User": user, "Impersonate-Group": group}

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool] | None = None,
        body: object = None,
        content_type: str = "application/json",
        timeout_s: float = _TIMEOUT_S,
        warnings: list[str] | None = None,
    ) -> JsonObject:
        """Send one request and return the answer's JSON object ({} when it has no body).

        What the server warns of, as kubectl would print it, is added to `warnings`.
        """
        response = self._send(
            method, path, query=query, body=body, content_type=content_type, timeout_s=timeout_s
        )
        text = response.data
        if warnings is not None:
            warnings += response.headers.getlist("Warning")
        if response.status >= _FIRST_REFUSAL:
            raise _refusal(response.status, text)
        try:
            answer: object = json.loads(text) if text else {}
        except ValueError:  # /readyz and the like answer in plain text
            answer = {"text": text.decode(errors="replace")}
        return answer if isinstance(answer, dict) else {"value": answer}

    def get(self, path: str) -> JsonObject:
        """Return one object."""
        return self.request("GET", path)

    def find(self, path: str) -> JsonObject | None:
        """Return one object, None when there is none."""
        try:
            return self.get(path)
        except ApiError as refusal:
            if refusal.status == _NOT_FOUND:
                return None
            raise

    def list(self, path: str, *, labels: str = "", fields: str = "") -> list[JsonObject]:
        """Return the objects of a collection that match the label and field selectors."""
        query = {"labelSelector": labels, "fieldSelector": fields}
        answer = self.request("GET", path, query={name: value for name, value in query.items() if value})
        items: list[JsonObject] = answer.get("items") or []
        return items

    def create(self, path: str, manifest: JsonObject) -> JsonObject:
        """Create an object in a collection and return it as stored."""
        return self.request("POST", path, body=manifest)

    def patch(
        self,
        path: str,
        patch: object,
        *,
        kind: PatchKind = PatchKind.MERGE,
        field_manager: str = "sandbox",
    ) -> JsonObject:
        """Patch an object and return it as stored. Server-side apply takes over fields of others."""
        query: dict[str, str | int | bool] = {"fieldManager": field_manager}
        if kind is PatchKind.APPLY:
            query["force"] = "true"
        return self.request("PATCH", path, query=query, body=patch, content_type=kind)

    def delete(self, path: str, *, grace_period_s: int | None = None, missing_ok: bool = False) -> None:
        """Delete an object, by default with its own grace period."""
        body = {} if grace_period_s is None else {"gracePeriodSeconds": grace_period_s}
        try:
            self.request("DELETE", path, body=body)
        except ApiError as refusal:
            if not (missing_ok and refusal.status == _NOT_FOUND):
                raise

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str | int | bool]) -> Iterator[urllib3.BaseHTTPResponse]:
        """Yield the open answer to a watch; the caller reads lines from it until it ends."""
        response = self._send("GET", path, query=query)
        try:
            if response.status >= _FIRST_REFUSAL:
                raise _refusal(response.status, response.data)
            yield response
        finally:
            with contextlib.suppress(Exception):  # it may have been shut down from another thread
                response.close()

    def follow(self, path: str, tell: Tell) -> Follower:
        """Return what tells of every change of a collection, once it is started."""
        return Follower(self, path, tell)

    def close(self) -> None:
        """Close idle connections."""
        pool: Any = self.client.rest_client
        pool.pool_manager.clear()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str | int | bool] | None,
        body: object = None,
        content_type: str = "application/json",
        timeout_s: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        rest: Any = self.client.rest_client
        url = self._url + path + (f"?{urlencode(query)}" if query else "")
        try:
            response: urllib3.BaseHTTPResponse = rest.pool_manager.request(
                method,
                url,
                body=None if body is None else json.dumps(body).encode(),
                headers={**self._headers, "Content-Type": content_type},
                preload_content=timeout_s is not None,
                timeout=urllib3.Timeout(connect=_TIMEOUT_S, read=timeout_s),
                retries=False,
            )
        except urllib3.exceptions.HTTPError as fault:
            raise SandboxError(
                f"the API server at {self._url} did not answer {method} {path}: {fault}"
            ) from fault
        return response


def _refusal(status: int, text: bytes) -> ApiError:
    try:
        answer: JsonObject = json.loads(text)
        return ApiError(status, str(answer.get("reason", "")), str(answer.get("message", "")))
    except (ValueError, AttributeError):
        return ApiError(status, "", text.decode(errors="replace")[:500])
