"""What the process was told: flags read once into one frozen object, checked as a whole.

Names and defaults are those of the Go original's two processes, which this one replaces; flags it
parses without effect are accepted and listed in ``docs/flags.md``.
"""

from __future__ import annotations

import ipaddress
import math
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from mcm.controllers.settings import ControllerSettings

LogFormat = Literal["text", "json"]

NO_TARGET = "none"
"""``--target-kubeconfig`` value: run without a target cluster; machines have no Nodes then."""

IN_CLUSTER = "inClusterConfig"
"""``--control-kubeconfig`` value: use the service account of the pod."""

_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Lease timing, as in client-go: lease > renew deadline > retry period."""

    enabled: bool = True
    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)

    def validate(self) -> list[str]:
        if not self.enabled:
            return []
        problems = []
        if self.retry_period <= timedelta(0):
            problems.append("--leader-elect-retry-period: must be positive")
        if self.renew_deadline <= self.retry_period * 1.2:
            problems.append(
                "--leader-elect-renew-deadline: must exceed 1.2 times --leader-elect-retry-period"
            )
        if self.lease_duration <= self.renew_deadline + self.retry_period:
            problems.append(
                "--leader-elect-lease-duration: must exceed --leader-elect-renew-deadline plus "
                "--leader-elect-retry-period, else the lease could lapse before we give up"
            )
        return problems


@dataclass(frozen=True, slots=True)
class Webhook:
    """The validating webhook; port 0 is none. Its folder holds ``tls.crt`` and ``tls.key``."""

    port: int = 0
    cert_dir: str = ""

    def validate(self) -> list[str]:
        if not 0 <= self.port <= 65535:
            return [f"--webhook-port: {self.port} is not a port (1 to 65535; 0 for no webhook)"]
        if self.port and not self.cert_dir:
            return ["--webhook-cert-dir: required with --webhook-port (tls.crt and tls.key)"]
        return []


@dataclass(frozen=True, slots=True)
class Options:
    """Everything ``mcm run`` needs to know. ``validate`` names the flag of each problem."""

    control_kubeconfig: str = ""
    target_kubeconfig: str = ""
    namespace: str = "default"
    provider: str = "simulated"
    simulate_cloud: bool = False
    address: str = "0.0.0.0"
    port: int = 10258
    log_format: LogFormat = "text"
    verbosity: int = 0
    kube_api_qps: float = 0.0
    kube_api_burst: int = 30
    max_in_flight: int = 64
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    webhook: Webhook = field(default_factory=Webhook)
    settings: ControllerSettings = field(default_factory=ControllerSettings)

    @property
    def has_target(self) -> bool:
        return self.target_kubeconfig != NO_TARGET

    @property
    def shares_cluster(self) -> bool:
        """Control and target are one cluster: then one connection serves both."""
        control, target = self.control_kubeconfig, self.target_kubeconfig
        return self.has_target and (not control or control == target)

    def validate(self) -> list[str]:
        """Return one line for each problem, each naming its flag; empty when all is well."""
        problems = []
        if not 1 <= self.port <= 65535:
            problems.append(f"--port: {self.port} is not a port (1 to 65535)")
        try:
            ipaddress.ip_address(self.address)
        except ValueError:
            problems.append(f"--address: {self.address!r} is not an IP address")
        if not self.namespace:
            problems.append("--namespace: must not be empty")
        elif not _NAMESPACE.fullmatch(self.namespace):
            problems.append(
                f"--namespace: {self.namespace!r} can be no namespace (at most 63 lower case "
                "letters, digits and hyphens)"
            )
        if not 0 <= self.kube_api_qps < math.inf:
            problems.append(
                "--kube-api-qps: must be a number and not negative (0 switches the limit off)"
            )
        if self.kube_api_burst < 0:
            problems.append("--kube-api-burst: must not be negative")
        if self.max_in_flight < 1:
            problems.append("--max-in-flight: must be at least 1")
        if not self.has_target and not self.control_kubeconfig:
            problems.append(
                f"--control-kubeconfig: required with --target-kubeconfig={NO_TARGET} "
                f"(a file, or {IN_CLUSTER})"
            )
        if self.simulate_cloud and not self.has_target:
            problems.append("--simulate-cloud: needs a target cluster for its machines to join")
        problems += self.leader_election.validate()
        problems += self.webhook.validate()
        if self.webhook.port == self.port:
            problems.append("--webhook-port: must not be that of --port")
        problems += self.settings.validate()
        return problems
