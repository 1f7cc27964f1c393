"""Of a large package only what reads kubeconfigs is loaded, and nobody else notices."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from mcm.client.kubeconfig_library import library

T = TypeVar("T")

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""
LOADS = f"""
import json, sys, tracemalloc
from mcm.client import kubeconfig, kubeconfig_library
import aiohttp, pathlib, tempfile, yaml
path = pathlib.Path(tempfile.mkdtemp()) / "config"
path.write_text({KUBECONFIG!r})
"""
REST = """
loaded = [m for m in sys.modules if m.partition(".")[0] == "kubernetes_asyncio"]
"""


def told(code: str, form: type[T]) -> T:
    """Run ``code`` in a process of its own; return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", LOADS + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return msgspec.json.decode(done.stdout, type=form)


def test_a_kubeconfig_costs_little_memory_and_leaves_no_modules() -> None:
    bytes_taken, server, modules = told(
        "tracemalloc.start()\n"
        "kubeconfig_library.library()\n"
        "peak = tracemalloc.get_traced_memory()[1]\n"
        "tracemalloc.stop()\n"
        "spec = kubeconfig.load(str(path))\n"
        f"{REST}\n"
        "print(json.dumps([peak, spec.server, loaded]))",
        tuple[int, str, list[str]],
    )
    assert server == "https://127.0.0.1:1"
    assert modules == []
    assert bytes_taken < 1024**2


def test_whoever_imports_the_package_afterwards_gets_all_of_it() -> None:
    assert told(
        "kubeconfig.load(str(path))\n"
        "import kubernetes_asyncio.config.kube_config as anew\n"
        "from kubernetes_asyncio.client import ApiClient, CoreV1Api\n"
        "ours = kubeconfig_library.library().merger\n"
        "print(json.dumps([ApiClient.__module__, anew.KubeConfigMerger is ours,\n"
        "                  kubeconfig.load(str(path)).server]))",
        list[object],
    ) == ["kubernetes_asyncio.client.api_client", False, "https://127.0.0.1:1"]


def test_what_somebody_imported_before_is_used_and_stays() -> None:
    assert told(
        "import kubernetes_asyncio.config.kube_config as theirs\n"
        "kubeconfig.load(str(path))\n"
        "print(json.dumps([kubeconfig_library.library().merger is theirs.KubeConfigMerger,\n"
        "                  sys.modules['kubernetes_asyncio.config.kube_config'] is theirs]))",
        list[bool],
    ) == [True, True]


@pytest.mark.parametrize(
    "as_if",
    [
        "kubeconfig_library._MENTIONED = ('ApiClient',)",  # it names another class of the client
        "kubeconfig_library._EMPTY += ('kubernetes_asyncio.config.kube_config',)",
    ],
)
def test_a_release_of_another_form_is_imported_whole(as_if: str) -> None:
    server, modules = told(
        f"{as_if}\n"
        "spec = kubeconfig.load(str(path))\n"
        f"{REST}\n"
        "print(json.dumps([spec.server, loaded]))",
        tuple[str, list[str]],
    )
    assert server == "https://127.0.0.1:1"
    assert "kubernetes_asyncio.client.models" in modules


def test_a_package_that_is_not_there_is_named() -> None:
    assert (
        told(
            "sys.modules['kubernetes_asyncio'] = None\n"
            "try:\n"
            "    kubeconfig_library.library()\n"
            "except ImportError as error:\n"
            "    print(json.dumps(error.name.partition('.')[0]))",
            str,
        )
        == "kubernetes_asyncio"
    )


def test_threads_that_load_at_once_get_the_same() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = {library() for _ in pool.map(lambda _: library(), range(8))}
    assert len(found) == 1


def test_an_entry_that_is_missing_raises_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(KUBECONFIG)
    loaded = library()
    config = loaded.merger(str(path)).config
    assert config is not None
    with pytest.raises(loaded.missing, match="Expected object with name another"):
        config["users"].get_with_name("another")
