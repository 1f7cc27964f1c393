"""Kubeconfig files, loaded by ``kubernetes_asyncio`` behind this one adapter.

The package parses the files, merges them and finds entries by name. It is imported only when a
kubeconfig is used, and no more of it than that takes (:mod:`mcm.client.kubeconfig_library`). What
it hands over is checked and turned into a :class:`ConnectionSpec` here; its ways of running
plugins, of refreshing OIDC tokens, of reading token files and of writing keys to temporary files
are not used: :mod:`mcm.client.credentials`, :mod:`mcm.client.execplugin` and :mod:`mcm.client.tls`
do that.

The rules are kubectl's: an entry belongs to the first file that names it, so does the current
context; paths are relative to the file they stand in.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from mcm.api.meta import JSONObject
from mcm.api.nulls import without_nulls
from mcm.client import kubeuser
from mcm.client.connection import ConnectionSpec, TLSSpec, check_urls
from mcm.client.errors import ConfigurationError
from mcm.client.kubeconfig_library import library
from mcm.client.kubeuser import ClusterEntry, ContextEntry, Origin, UserEntry
from mcm.client.proxies import proxy_for
from mcm.client.tls import build_context, read_material

if TYPE_CHECKING:
    from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigMerger

E = TypeVar("E")

_LARGEST = 16 * 1024 * 1024
_PIECE = 64 * 1024

logger = logging.getLogger(__name__)


def candidates(path: str | None = None, *, environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return the files to load, existing ones only, without duplicates; empty if there are none.

    An explicit ``path`` is the only one. Else those of ``$KUBECONFIG``, else ``~/.kube/config``.
    Raises :class:`ConfigurationError` if the explicit path does not exist.
    """
    environ = os.environ if environ is None else environ
    if path:
        file = Path(path).expanduser()
        if not file.exists():
            raise ConfigurationError(f"kubeconfig {file}: no such file")
        return [file]
    listed = [Path(p) for p in environ.get("KUBECONFIG", "").split(os.pathsep) if p]
    if not listed:
        home = environ.get("HOME", "")
        listed = [Path(home or Path.home()) / ".kube" / "config"]
    return [file for file in dict.fromkeys(listed) if file.exists()]


def load(
    path: str | None = None,
    *,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> ConnectionSpec:
    """Load a connection from kubeconfig files; blocks, so call it before the loop is busy.

    Every :class:`ConfigurationError` is one line that names the file, or the entry in it, and what
    is expected there. Certificates are tried out, so that a bad one is found here.
    """
    environ = os.environ if environ is None else environ
    files = candidates(path, environ=environ)
    if not files:
        raise _nothing_found(environ)
    config = _merged(files)
    name, chosen = _context(config, context)
    cluster, cluster_at = _named(config, "cluster", chosen.cluster, name, ClusterEntry)
    user, user_at = UserEntry(), Origin("", Path())
    if chosen.user:
        user, user_at = _named(config, "user", chosen.user, name, UserEntry)
    return _specification(cluster, cluster_at, user, user_at, chosen.namespace, environ)


def _nothing_found(environ: Mapping[str, str]) -> ConfigurationError:
    listed = environ.get("KUBECONFIG", "")
    if listed:
        return ConfigurationError(f"no kubeconfig found: no file of KUBECONFIG={listed} exists")
    return ConfigurationError(
        "no kubeconfig found: name a file, set KUBECONFIG, or make ~/.kube/config"
    )


@dataclass(frozen=True, slots=True)
class _Merged:
    """All files as one: the package's tree of named entries, and the current context."""

    root: ConfigNode
    current_context: str
    files: str  # for texts


def _specification(
    cluster: ClusterEntry,
    cluster_at: Origin,
    user: UserEntry,
    user_at: Origin,
    namespace: str,
    environ: Mapping[str, str],
) -> ConnectionSpec:
    kubeuser.check(user, user_at)
    tls = _tls(cluster, cluster_at, user, user_at)
    server = _server(cluster, cluster_at, tls)
    with _at(cluster_at):
        build_context(
            read_material(replace(tls, cert_file="", cert_data=b"", key_file="", key_data=b""))
        )
    with _at(user_at):
        build_context(read_material(tls))
    spec = ConnectionSpec(
        server=server,
        tls=tls,
        credentials=kubeuser.credentials(user, user_at, cluster, cluster_at),
        impersonation=kubeuser.impersonation(user),
        proxy=cluster.proxy_url or proxy_for(server, environ),
        tls_server_name=cluster.tls_server_name,
        namespace=namespace,
        compression=not cluster.disable_compression,
        cluster_entry=str(cluster_at),
        user_entry=str(user_at),
    )
    with _at(cluster_at):
        check_urls(spec)
    return spec


@contextmanager
def _at(origin: Origin) -> Iterator[None]:
    """Say in which entry a mistake is."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(f"{origin}: {error}") from None


def _tls(cluster: ClusterEntry, cluster_at: Origin, user: UserEntry, user_at: Origin) -> TLSSpec:
    return TLSSpec(
        ca_file=cluster_at.path(cluster.certificate_authority),
        ca_data=cluster_at.data(cluster.ca_data, "certificate-authority-data"),
        cert_file=user_at.path(user.client_certificate),
        cert_data=user_at.data(user.client_certificate_data, "client-certificate-data"),
        key_file=user_at.path(user.client_key),
        key_data=user_at.data(user.client_key_data, "client-key-data"),
        insecure=cluster.insecure_skip_tls_verify,
    )


def _server(cluster: ClusterEntry, origin: Origin, tls: TLSSpec) -> str:
    server = cluster.server.strip().rstrip("/")
    if not server:
        raise ConfigurationError(f"{origin}: no server; expected a URL like https://host:6443")
    if "://" not in server:
        server = f"{'https' if tls.configured else 'http'}://{server}"
    return server


# What the package does ----------------------------------------------------------------------------


def _merged(files: Sequence[Path]) -> _Merged:
    """Parse each file (to know which one is at fault), then merge those that say anything."""
    parsed = {file: _parsed(file) for file in files}
    full = [file for file, content in parsed.items() if content is not None]
    if not full:
        raise ConfigurationError(f"kubeconfig {files[0]} is empty: expected clusters and contexts")
    with _refusing(full[0]):
        root = _merger(os.pathsep.join(map(str, full))).config
    assert root is not None, "there is at least one file"
    contents = [content for content in parsed.values() if content is not None]
    # The package takes the last file's current context, kubectl the first one's that has any.
    current = next((c for c in (_text(c, "current-context") for c in contents) if c), "")
    return _Merged(root, current, ", ".join(map(str, full)))


def _parsed(file: Path) -> JSONObject | None:
    """Return the content of one file, None if there is nothing in it."""
    if os.pathsep in str(file):
        raise ConfigurationError(f"kubeconfig {file}: the path must not contain {os.pathsep!r}")
    try:
        text = _content(file).decode()
    except OSError as error:
        raise ConfigurationError(f"cannot read kubeconfig {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise _not_a_kubeconfig(file, "not text") from None
    lines = (line.strip() for line in text.splitlines())
    if all(not line or line.startswith("#") for line in lines):
        return None
    with _refusing(file):
        content = _merger(str(file)).config_files[str(file)]
    if not isinstance(content, dict) or content.get("kind", "Config") != "Config":
        raise _not_a_kubeconfig(file, "another kind of document")
    if not content.keys() & {"clusters", "contexts", "users", "current-context"}:
        raise _not_a_kubeconfig(file, "no clusters, contexts or users in it")
    return content


def _content(file: Path) -> bytes:
    """Read it in pieces, as it may be a device without end: room for the largest at once would
    also have the C library keep up to twice as much of what is freed ever after (mallopt(3),
    ``M_MMAP_THRESHOLD``)."""
    content = bytearray()
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            content += piece
            if len(content) > _LARGEST:
                raise _not_a_kubeconfig(file, "too large")
    return bytes(content)


def _merger(paths: str) -> KubeConfigMerger:
    return library().merger(paths)


@contextmanager
def _refusing(file: Path) -> Iterator[None]:
    """Turn whatever the package raises on a strange file into one line that names the file."""
    import yaml

    try:
        yield
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark is not None else ""
        raise _not_a_kubeconfig(file, f"not YAML{where}") from None
    except OSError as error:
        raise ConfigurationError(f"cannot read kubeconfig {file}: {error.strerror}") from None
    except (TypeError, AttributeError, KeyError, ValueError):
        # It indexes and iterates without looking: lists that are none, entries without a name.
        raise _not_a_kubeconfig(file, "clusters, contexts or users of a wrong form") from None


def _context(config: _Merged, asked: str | None) -> tuple[str, ContextEntry]:
    name = asked or config.current_context
    if not name:
        known = ", ".join(_names(config, "context")) or "none"
        raise ConfigurationError(
            f"kubeconfig {config.files}: no current-context; choose one with --context ({known})"
        )
    entry, _ = _named(config, "context", name, "", ContextEntry)
    if not entry.cluster:
        raise ConfigurationError(f"kubeconfig {config.files}: context {name!r} names no cluster")
    return name, entry


def _named(config: _Merged, kind: str, name: str, context: str, form: type[E]) -> tuple[E, Origin]:
    """Find an entry by name, and the file it comes from, in the package's merged tree."""
    node = _find(config, kind, name)
    if node is None:
        known = ", ".join(_names(config, kind)) or "none"
        of = f" of context {context!r}" if context else ""
        raise ConfigurationError(
            f"kubeconfig {config.files}: {kind} {name!r}{of} does not exist (there are: {known})"
        )
    origin = Origin(f"kubeconfig {node.path}, {kind} {name!r}", Path(node.path or "").parent)
    try:
        return msgspec.convert(without_nulls(node.value.get(kind) or {}, form), form), origin
    except msgspec.ValidationError as error:
        # Such a text says types and the path, never the value.
        raise ConfigurationError(f"{origin}: {error}") from None


def _find(config: _Merged, kind: str, name: str) -> ConfigNode | None:
    try:
        found: ConfigNode | None = config.root[f"{kind}s"].get_with_name(name, safe=True)
    except library().missing:
        return None  # an empty list counts as a missing one there
    return found


def _names(config: _Merged, kind: str) -> list[str]:
    return [_text(node.value, "name") for node in config.root.value.get(f"{kind}s", ())]


def _text(content: JSONObject, key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _not_a_kubeconfig(file: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"{file} is no kubeconfig ({why}): expected YAML with clusters, contexts and users"
    )
