"""What every history here has in common: nobody fights, so no write may be taken for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mcm.client.requests import Patch
from mcm.controllers.repeated_writes import RepeatedWrites, Repetition, Target


@pytest.fixture(autouse=True)
def _no_write_is_held_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found: list[Repetition] = []
    wrote = RepeatedWrites.wrote

    def watched(
        self: RepeatedWrites, target: Target, uid: str, patch: Patch, now: float
    ) -> Repetition | None:
        repetition = wrote(self, target, uid, patch, now)
        if repetition is not None:
            found.append(repetition)
        return repetition

    monkeypatch.setattr(RepeatedWrites, "wrote", watched)
    yield
    assert not found
