"""Which machine provider to load, and whether to run its cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class ProviderChoice:
    """``name`` is that of an entry point; ``simulate_cloud`` is for a provider that has one."""

    name: str = "simulated"
    simulate_cloud: bool = False

    def validate(self) -> list[str]:
        return []
