"""Where traces are sent, if anywhere; the environment may say so, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final
from urllib.parse import urlsplit


@final
@dataclass(frozen=True, slots=True)
class Tracing:
    """``otlp_endpoint`` is the base URL of an OpenTelemetry backend; empty: the environment's."""

    otlp_endpoint: str = ""

    def validate(self) -> list[str]:
        if not self.otlp_endpoint:
            return []
        try:
            url = urlsplit(self.otlp_endpoint)
            fits = url.scheme in ("http", "https") and bool(url.hostname)
        except ValueError:
            fits = False
        return [] if fits else ["--otlp-endpoint: must be a URL, such as http://collector:4318"]
