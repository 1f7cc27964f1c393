"""What is no resource: health, version, metrics, discovery, OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import final

from mcm.api.meta import JSONObject
from mcm.client.transport import Request, Response
from mcm.sandbox.apiserver.discovery import discovery_response
from mcm.sandbox.apiserver.errors import method_not_allowed, unknown_path
from mcm.sandbox.apiserver.openapi import openapi_response
from mcm.sandbox.apiserver.reading.rendering import json_response, text_response
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.requests.counters import RequestCounters, exposition

_HEALTH = ("healthz", "livez", "readyz")
_CHECKS = ("ping", "log", "etcd")
_ROOTS = ("/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3")
_VERSION = re.compile(r"v(\d+)\.(\d+)")


@final
class Endpoints:
    """Answers GETs outside of resources."""

    def __init__(self, state: ServerState, requests: RequestCounters, *, version: str) -> None:
        self._state = state
        self._requests = requests
        self._version = version

    def answer(
        self, request: Request, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Response:
        """Raises StatusError: 404 for an unknown resource, 405 for any method but GET. A path in
        no served group and version is answered with plain text, as upstream."""
        path = request.path.rstrip("/") or "/"
        if request.method != "GET" and not path.startswith("/api"):
            raise method_not_allowed()
        if request.method == "GET":
            response = self._own(path, query) or self._documents(path, query, headers)
            if response is not None:
                return response
        if self._is_in_a_version(path):
            raise unknown_path()
        return text_response("404 page not found\n", status=404)

    def _is_in_a_version(self, path: str) -> bool:
        """Whether anything is served beside ``path``; else not even the form is the API's."""
        match path.split("/")[1:]:
            case ["api", version, _, *_]:
                return bool(self._state.registry.resources("", version))
            case ["apis", group, version, _, *_]:
                return bool(self._state.registry.resources(group, version))
            case _:
                return False

    def _own(self, path: str, query: Mapping[str, str]) -> Response | None:
        match path.split("/")[1:]:
            case [""]:
                return json_response({"paths": [*_ROOTS, "/readyz", "/version"]})
            case ["version"]:
                return json_response(self._version_document())
            case ["metrics"]:
                return self._metrics()
            case [check] if check in _HEALTH:
                return _health(check, query)
            case [check, name] if check in _HEALTH and name in _CHECKS:
                return text_response("ok")
            case _:
                return None

    def _documents(
        self, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Response | None:
        accept = headers.get("accept", "")
        if path.startswith("/openapi/"):
            return openapi_response(self._state.registry, path, accept, query)
        return discovery_response(self._state.registry, path, accept)

    def _version_document(self) -> JSONObject:
        match = _VERSION.match(self._version)
        major, minor = match.groups() if match else ("1", "0")
        return {
            "major": major,
            "minor": minor,
            "gitVersion": self._version,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "",
            "compiler": "",
            "platform": "linux/amd64",
        }

    def _metrics(self) -> Response:
        objects = {c.storage: len(c) for c in self._state.store.collections()}
        return text_response(
            exposition(self._requests, watches=len(self._state.streams), objects=objects)
        )


def _health(check: str, query: Mapping[str, str]) -> Response:
    if "verbose" not in query:
        return text_response("ok")
    lines = [f"[+]{name} ok" for name in _CHECKS]
    return text_response("\n".join([*lines, f"{check} check passed"]) + "\n")
