"""The file in which flags may be set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ConfigFile:
    """``path`` is empty without one. What stands in it is part of the other groups by now."""

    path: str = ""

    def validate(self) -> list[str]:
        return []
