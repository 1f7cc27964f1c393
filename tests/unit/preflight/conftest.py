"""A server to look at."""

from __future__ import annotations

import pytest

from tests.unit.preflight.typing_at import Typing


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Typing:
    return Typing(monkeypatch)
