"""A shell in which the commands for Nodes are typed."""

from __future__ import annotations

import pytest

from tests.unit.node_commands.shell import Shell


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(monkeypatch)
