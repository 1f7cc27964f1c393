from __future__ import annotations

import base64
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from mcm.client.errors import ConfigurationError
from mcm.sandbox.apiserver.front.kubeconfig import check_destination, write_kubeconfig
from mcm.sandbox.cluster import SandboxSettings, sandbox


@dataclass(frozen=True)
class Endpoint:
    url: str = "https://127.0.0.1:7443"
    ca: bytes = b"PEM"
    token: str = "secret"


def test_it_holds_all_that_a_client_needs(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "kubeconfig.yaml"
    write_kubeconfig(path, Endpoint(), namespace="machines")
    document = yaml.safe_load(path.read_text())
    current = document["current-context"]
    context = {c["name"]: c["context"] for c in document["contexts"]}[current]
    cluster = {c["name"]: c["cluster"] for c in document["clusters"]}[context["cluster"]]
    user = {u["name"]: u["user"] for u in document["users"]}[context["user"]]
    assert context["namespace"] == "machines"
    assert cluster["server"] == "https://127.0.0.1:7443"
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"PEM"
    assert user == {"token": "secret"}


def test_it_can_be_read_by_its_owner_only_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig.yaml"
    write_kubeconfig(path, Endpoint())
    path.chmod(0o644)
    write_kubeconfig(path, Endpoint(token="new"))
    assert path.stat().st_mode & 0o777 == 0o600
    assert "new" in path.read_text()
    assert os.listdir(tmp_path) == ["kubeconfig.yaml"]


@pytest.mark.parametrize(
    "content",
    [
        "clusters: [{name: production}]",
        "clusters: [{name: mcm-sandbox}, {name: production}]",
        "some: file",
        "- list",
        "{not yaml",
    ],
)
def test_a_file_that_is_not_the_sandboxs_is_never_overwritten(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="--kubeconfig"):
        write_kubeconfig(path, Endpoint())
    assert path.read_text() == content


def test_an_empty_file_may_be_filled(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.touch()
    write_kubeconfig(path, Endpoint())
    assert path.read_text()


def test_a_path_that_cannot_be_written_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write the kubeconfig"):
        write_kubeconfig(tmp_path / "file" / "config", Endpoint())


def test_what_is_no_file_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    """``/dev/full`` can be read for ever; a pipe waits for its writer."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (Path("/dev/full"), pipe, tmp_path):
        with pytest.raises(ConfigurationError, match=r"no regular file.*--kubeconfig"):
            check_destination(path)
        with pytest.raises(ConfigurationError, match="no regular file"):
            write_kubeconfig(path, Endpoint())
    assert pipe.is_fifo()


def test_a_huge_file_is_somebody_elses(tmp_path: Path) -> None:
    path = tmp_path / "image"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ConfigurationError, match="would be overwritten"):
        write_kubeconfig(path, Endpoint())


def test_a_full_disk_is_one_line_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kubeconfig.yaml"
    write_kubeconfig(path, Endpoint(token="old"))
    full = os.open("/dev/full", os.O_WRONLY)
    monkeypatch.setattr(tempfile, "mkstemp", lambda **_: (full, str(tmp_path / "scratch")))
    (tmp_path / "scratch").touch()
    with pytest.raises(ConfigurationError) as caught:
        write_kubeconfig(path, Endpoint(token="new"))
    assert str(caught.value) == (
        f"cannot write the kubeconfig {path}: No space left on device; make room, or choose"
        " another place with --kubeconfig"
    )
    assert os.listdir(tmp_path) == ["kubeconfig.yaml"]
    assert "old" in path.read_text()


async def test_a_sandbox_touches_nothing_beside_a_destination_it_cannot_use(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ConfigurationError, match="no regular file"):
        async with sandbox(SandboxSettings(kubeconfig=pipe, port=0)):
            raise AssertionError("it must not start")
    assert os.listdir(tmp_path) == ["pipe"]
