"""The connection of a pod to its own cluster, from what the kubelet puts there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mcm.client.connection import ConnectionSpec, TLSSpec, TokenFile
from mcm.client.errors import ConfigurationError
from mcm.client.proxies import proxy_for

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


def available(*, environ: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT) -> bool:
    """Tell whether this process looks like running in a pod with a service account."""
    environ = os.environ if environ is None else environ
    return bool(environ.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").exists()


def load(
    *, environ: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT
) -> ConnectionSpec:
    """Return how to reach the cluster this pod runs in.

    Raises :class:`ConfigurationError` naming the variable or file that is missing. A missing CA is
    an error too: to fall back to the system's authorities would only fail later, less clearly.
    """
    environ = os.environ if environ is None else environ
    host = _variable(environ, "KUBERNETES_SERVICE_HOST")
    port = _variable(environ, "KUBERNETES_SERVICE_PORT")
    for name in ("token", "ca.crt"):
        if not _text(folder / name):
            raise ConfigurationError(f"not in a cluster: {folder / name} is empty")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    return ConnectionSpec(
        server=server,
        tls=TLSSpec(ca_file=str(folder / "ca.crt")),
        credentials=TokenFile(str(folder / "token")),
        proxy=proxy_for(server, environ),
        namespace=_namespace(folder),
        cluster_entry="the cluster this pod runs in",
        user_entry="its service account",
    )


def _variable(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise ConfigurationError(f"not in a cluster: {name} is not set")
    return value


def _namespace(folder: Path) -> str:
    try:
        return (folder / "namespace").read_text().strip()
    except OSError:
        return ""  # older set-ups mount only token and CA; the flag decides then


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError as error:
        raise ConfigurationError(
            f"not in a cluster: cannot read {path}: {error.strerror}"
        ) from None
