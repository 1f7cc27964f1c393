"""What makes an API server ask, as the command prints it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from mcm.cli import main


def manifest(*arguments: str) -> Any:
    result = CliRunner().invoke(main, ["webhook-manifest", *arguments])
    assert result.exit_code == 0, result.output
    (document,) = yaml.safe_load_all(result.stdout)
    return document


def test_a_service_is_asked_and_nothing_depends_on_its_answer(tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
    (webhook,) = manifest("--service", "mcm-webhook", "--namespace", "m", "--ca", str(authority))[
        "webhooks"
    ]
    assert webhook["clientConfig"] == {
        "service": {"name": "mcm-webhook", "namespace": "m", "path": "/validate", "port": 443},
        "caBundle": base64.b64encode(authority.read_bytes()).decode(),
    }
    assert webhook["failurePolicy"] == "Ignore"
    (rule,) = webhook["rules"]
    assert rule["operations"] == ["CREATE", "UPDATE"]
    assert set(rule["resources"]) == {
        "machines",
        "machineclasses",
        "machinesets",
        "machinesets/scale",
        "machinedeployments",
        "machinedeployments/scale",
    }


def test_a_url_may_be_asked_and_silence_may_refuse() -> None:
    (webhook,) = manifest("--url", "https://10.0.0.1:9443/validate", "--fail")["webhooks"]
    assert webhook["clientConfig"] == {"url": "https://10.0.0.1:9443/validate"}
    assert webhook["failurePolicy"] == "Fail"
