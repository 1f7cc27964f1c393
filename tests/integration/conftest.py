from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from mcm.api.crds import crd_manifests
from tests.integration.background import BackgroundServer
from tests.integration.kubectl import Kubectl, find_kubectl

pytest.register_assert_rewrite("tests.integration.faq.reader", "tests.integration.faq.scenarios")
_numbers = count(1)


@pytest.fixture(scope="session")
def kubectl_binary() -> str:
    binary = find_kubectl()
    if binary is None:
        reason = "no kubectl: neither KUBECTL, nor PATH, nor ~/.cache/mcm-envtest/bin has one"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return binary


@pytest.fixture(scope="session")
def background(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackgroundServer]:
    """One server for all kubectl tests, with the machine kinds defined."""
    with BackgroundServer(tmp_path_factory.mktemp("sandbox"), crd_manifests()) as server:
        yield server


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def kubectl_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(kubectl_binary: str, background: BackgroundServer, kubectl_home: Path) -> Kubectl:
    """kubectl in a namespace of its own."""
    namespace = f"test-{next(_numbers)}"
    tool = Kubectl(kubectl_binary, kubectl_home, background.kubeconfig, namespace)
    tool("create", "namespace", namespace)
    return tool
