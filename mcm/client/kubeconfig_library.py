"""What of ``kubernetes_asyncio`` reads kubeconfigs, loaded without the rest of the package.

Importing any part of the package runs its root and that of its client, which import a class for
each type of Kubernetes: 56 MiB that stay for good, more than all else of a manager at its start.
Its kubeconfig code needs none of them. So while that is imported, the packages above it stand there
empty, with their places but without their code, and afterwards nothing is left of them: whoever
else imports the package, a provider for example, gets the whole of it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from kubernetes_asyncio.config.config_exception import ConfigException
    from kubernetes_asyncio.config.kube_config import KubeConfigMerger

_PACKAGE: Final = "kubernetes_asyncio"
_CLIENT: Final = f"{_PACKAGE}.client"
_EMPTY: Final = (_PACKAGE, _CLIENT, f"{_PACKAGE}.config")
_MENTIONED: Final = ("ApiClient", "Configuration")
"""Of the client, what the kubeconfig code names for functions that are not called here."""
_lock = threading.Lock()


class Library(NamedTuple):
    """The class that parses and merges files, and the error of an entry that is not there."""

    merger: type[KubeConfigMerger]
    missing: type[ConfigException]


def library() -> Library:
    """Load it, the first time; else return what was loaded.

    Not to be called while another thread imports the package. Raises ImportError if it is missing.
    """
    with _lock:
        return _loaded()


@cache
def _loaded() -> Library:
    if _PACKAGE in sys.modules:  # somebody paid for it
        return _imported()
    try:
        with _packages_empty():
            return _imported()
    except (ImportError, AttributeError):  # a release whose kubeconfig code wants more of it
        return _imported()


def _imported() -> Library:
    from kubernetes_asyncio.config.config_exception import ConfigException
    from kubernetes_asyncio.config.kube_config import KubeConfigMerger

    return Library(KubeConfigMerger, ConfigException)


@contextmanager
def _packages_empty() -> Iterator[None]:
    """Have the packages found without their code being run; forget all of them at the end."""
    try:
        for name in _EMPTY:
            spec = importlib.util.find_spec(name)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.modules[name] = importlib.util.module_from_spec(spec)
        for name in _MENTIONED:
            setattr(sys.modules[_CLIENT], name, type(name, (), {}))
        yield
    finally:
        for name in [n for n in sys.modules if n == _PACKAGE or n.startswith(f"{_PACKAGE}.")]:
            del sys.modules[name]
