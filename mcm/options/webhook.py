"""The validating webhook: its port, and where its certificate is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Webhook:
    """Port 0 is no webhook. The folder holds ``tls.crt`` and ``tls.key``."""

    port: int = 0
    cert_dir: str = ""

    def validate(self) -> list[str]:
        if not 0 <= self.port <= 65535:
            return [f"--webhook-port: {self.port} is not a port (1 to 65535; 0 for no webhook)"]
        if self.port and not self.cert_dir:
            return ["--webhook-cert-dir: required with --webhook-port (tls.crt and tls.key)"]
        return []
