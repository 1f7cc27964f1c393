from __future__ import annotations

from pathlib import Path

import pytest

from mcm.client import incluster
from mcm.client.connection import TLSSpec, TokenFile
from mcm.client.errors import ConfigurationError

ENVIRON = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"token": "t\n", "ca.crt": "PEM", "namespace": "garden\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_pod_finds_its_cluster(folder: Path) -> None:
    spec = incluster.load(environ=ENVIRON, folder=folder)
    assert spec.server == "https://10.0.0.1:443"
    assert spec.tls == TLSSpec(ca_file=str(folder / "ca.crt"))
    assert spec.credentials == TokenFile(str(folder / "token"))
    assert spec.namespace == "garden"
    assert incluster.available(environ=ENVIRON, folder=folder)


def test_an_ipv6_address_gets_brackets(folder: Path) -> None:
    environ = {**ENVIRON, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert incluster.load(environ=environ, folder=folder).server == "https://[fd00::1]:443"


@pytest.mark.parametrize("name", list(ENVIRON))
def test_a_missing_variable_is_named(name: str, folder: Path) -> None:
    environ = {k: v for k, v in ENVIRON.items() if k != name}
    with pytest.raises(ConfigurationError, match=f"{name} is not set"):
        incluster.load(environ=environ, folder=folder)


@pytest.mark.parametrize("name", ["token", "ca.crt"])
def test_a_missing_or_empty_file_is_named(name: str, folder: Path) -> None:
    (folder / name).write_text("\n")
    with pytest.raises(ConfigurationError, match=f"{name} is empty"):
        incluster.load(environ=ENVIRON, folder=folder)
    (folder / name).unlink()
    with pytest.raises(ConfigurationError, match=f"cannot read .*{name}: No such file"):
        incluster.load(environ=ENVIRON, folder=folder)


def test_the_namespace_file_is_optional(folder: Path) -> None:
    (folder / "namespace").unlink()
    assert incluster.load(environ=ENVIRON, folder=folder).namespace == ""


def test_outside_of_a_cluster_it_is_not_available(tmp_path: Path) -> None:
    assert not incluster.available(environ={}, folder=tmp_path)
    assert not incluster.available(environ=ENVIRON, folder=tmp_path)


def test_the_environments_proxy_counts(folder: Path) -> None:
    environ = {**ENVIRON, "HTTPS_PROXY": "http://p:1"}
    assert incluster.load(environ=environ, folder=folder).proxy == "http://p:1"
