"""Form and detail of the log lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from mcm.log_modules import rules_of

LogFormat = Literal["text", "json"]


@final
@dataclass(frozen=True, slots=True)
class Logging:
    """``verbosity`` counts as klog's does: 4 and more is debug."""

    format: LogFormat = "text"
    verbosity: int = 0
    vmodule: str = ""

    def validate(self) -> list[str]:
        try:
            rules_of(self.vmodule)
        except ValueError as error:
            return [f"--vmodule: {error} (expected some with commas, as leaderelection=4)"]
        return []
