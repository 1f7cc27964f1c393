"""Where the HTTP endpoints listen, and who may read metrics."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Endpoints:
    """``address`` is that of the webhook, too. ``metrics_port`` 0 is ``port``; elsewhere probes
    stay on ``port``, and all else is on ``metrics_port``, where TLS is then spoken if it is."""

    address: str = "0.0.0.0"
    port: int = 10258
    metrics_port: int = 0
    metrics_tls_cert_dir: str = ""
    metrics_authorization: bool = False
    metrics_token_audiences: tuple[str, ...] = ()

    def validate(self) -> list[str]:
        problems = []
        if not 1 <= self.port <= 65535:
            problems.append(f"--port: {self.port} is not a port (1 to 65535)")
        if not 0 <= self.metrics_port <= 65535:
            problems.append(
                f"--metrics-port: {self.metrics_port} is not a port (1 to 65535; 0 for --port)"
            )
        if self.metrics_port and self.metrics_port == self.port:
            problems.append("--metrics-port: must not be that of --port (0 puts all on --port)")
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            problems.append(f"--address: {self.address!r} is not an IP address")
        if self.metrics_token_audiences and not self.metrics_authorization:
            problems.append("--metrics-token-audiences: needs --metrics-authorization")
        return problems
