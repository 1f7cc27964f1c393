from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from mcm.api import codec

# The machines that run the tests may be busy with something else.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


@pytest.fixture(scope="session")
def recorded() -> Callable[[str], list[codec.WatchFrame]]:
    """The events of one resource, given its plural."""

    def read(plural: str) -> list[codec.WatchFrame]:
        path = Path(__file__).parent / "recorded" / f"{plural}.jsonl"
        return [codec.decode_frame(line) for line in path.read_bytes().splitlines()]

    return read
