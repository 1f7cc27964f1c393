"""The kubeconfig by which ``kubectl`` and the manager reach a sandbox."""

from __future__ import annotations

import base64
import errno
from pathlib import Path
from typing import Protocol

import yaml

from mcm.api.meta import JSONObject
from mcm.client.errors import ConfigurationError
from mcm.sandbox.apiserver.front.private_files import write_private

NAME = "mcm-sandbox"
"""The name of its only cluster, user and context."""

_LARGEST = 1024 * 1024
"""Bytes: what a sandbox writes has a few thousand."""


class Endpoint(Protocol):
    """A server that can be reached: where, whom to trust, what to say."""

    @property
    def url(self) -> str: ...

    @property
    def ca(self) -> bytes: ...

    @property
    def token(self) -> str: ...


def kubeconfig(endpoint: Endpoint, *, namespace: str = "default") -> JSONObject:
    """Return a kubeconfig with the CA inline and a bearer token."""
    certificate = base64.b64encode(endpoint.ca).decode()
    context = {"cluster": NAME, "user": NAME, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": NAME,
                "cluster": {"server": endpoint.url, "certificate-authority-data": certificate},
            }
        ],
        "users": [{"name": NAME, "user": {"token": endpoint.token}}],
        "contexts": [{"name": NAME, "context": context}],
        "current-context": NAME,
        "preferences": {},
    }


def write_kubeconfig(path: Path, endpoint: Endpoint, *, namespace: str = "default") -> None:
    """Write the kubeconfig with mode 0600, whole or not at all.

    Raises:
        ConfigurationError: the file cannot be written, or belongs to other clusters: a kubeconfig
            that is not a sandbox's is never overwritten.
    """
    check_destination(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = yaml.safe_dump(kubeconfig(endpoint, namespace=namespace), sort_keys=False)
        write_private(path, document.encode())
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the kubeconfig {path}: {error.strerror or error}; {_remedy(error)}choose"
            " another place with --kubeconfig"
        ) from error


def check_destination(path: Path) -> None:
    """Raise ConfigurationError if a kubeconfig must not be written to ``path``.

    What is no regular file is not even read: a device may have no end, a pipe no writer.
    """
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise ConfigurationError(
                f"{path} is no regular file; choose another place with --kubeconfig"
            )
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror or error}; choose another place with --kubeconfig"
        ) from error
    if len(content) > _LARGEST or not _is_a_sandboxs(content):
        raise ConfigurationError(
            f"{path} is not a kubeconfig of the sandbox and would be overwritten; "
            "choose another file with --kubeconfig, or remove it"
        )


def _remedy(error: OSError) -> str:
    return "make room, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""


def _is_a_sandboxs(content: bytes) -> bool:
    if not content.strip():
        return True
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError:
        return False
    clusters = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(clusters, list):
        return False
    return [c.get("name") for c in clusters if isinstance(c, dict)] == [NAME]
