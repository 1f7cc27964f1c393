"""All groups of options together, and what two of them must agree about.

Names and defaults are those of the Go original's two processes, which this one replaces; flags it
parses without effect are accepted and listed in ``docs/flags.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from mcm.controllers.selection import Group
from mcm.controllers.settings import ControllerSettings
from mcm.options.api_requests import ApiRequests
from mcm.options.clusters import Clusters
from mcm.options.config_file import ConfigFile
from mcm.options.controllers import ControllerChoice
from mcm.options.endpoints import Endpoints
from mcm.options.leader_election import LeaderElection
from mcm.options.logging import Logging
from mcm.options.profiling import Profiling
from mcm.options.provider import ProviderChoice
from mcm.options.sharding import Sharding
from mcm.options.tracing import Tracing
from mcm.options.webhook import Webhook
from mcm.options.without_effect import WithoutEffect


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything ``mcm run`` needs to know. Each field is a group, made by its default factory."""

    clusters: Clusters = field(default_factory=Clusters)
    provider: ProviderChoice = field(default_factory=ProviderChoice)
    controllers: ControllerChoice = field(default_factory=ControllerChoice)
    endpoints: Endpoints = field(default_factory=Endpoints)
    profiling: Profiling = field(default_factory=Profiling)
    tracing: Tracing = field(default_factory=Tracing)
    logging: Logging = field(default_factory=Logging)
    api_requests: ApiRequests = field(default_factory=ApiRequests)
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    sharding: Sharding = field(default_factory=Sharding)
    webhook: Webhook = field(default_factory=Webhook)
    config_file: ConfigFile = field(default_factory=ConfigFile)
    without_effect: WithoutEffect = field(default_factory=WithoutEffect)
    settings: ControllerSettings = field(default_factory=ControllerSettings)

    def validate(self) -> list[str]:
        """Return one line for each problem, each naming its flag; empty when all is well."""
        return [
            *self.clusters.validate(),
            *self.provider.validate(),
            *self.controllers.validate(),
            *self.endpoints.validate(),
            *self.profiling.validate(),
            *self.tracing.validate(),
            *self.logging.validate(),
            *self.api_requests.validate(),
            *self.leader_election.validate(),
            *self.sharding.validate(),
            *self.webhook.validate(),
            *self.config_file.validate(),
            *self.without_effect.validate(),
            *self.settings.validate(),
            *self._disagreements(),
        ]

    def _disagreements(self) -> list[str]:
        """What two groups cannot both say."""
        problems = []
        if self.provider.simulate_cloud and not self.clusters.has_target:
            problems.append("--simulate-cloud: needs a target cluster for its machines to join")
        if self.provider.simulate_cloud and Group.MACHINES not in self.controllers.groups:
            problems.append("--simulate-cloud: needs one of the machine controllers to run")
        if self.sharding.name and not self.leader_election.enabled:
            problems.append("--shard-name: needs --leader-elect: shards exclude others by leases")
        if self.sharding.name and self.controllers.names != ControllerChoice().names:
            problems.append("--shard-name: a shard runs all controllers (--controllers=*)")
        if self.sharding.name and self.provider.simulate_cloud:
            problems.append("--simulate-cloud: not in a shard, as each of them would run the cloud")
        if self.webhook.port and self.webhook.port == self.endpoints.port:
            problems.append("--webhook-port: must not be that of --port")
        if self.webhook.port and self.webhook.port == self.endpoints.metrics_port:
            problems.append("--webhook-port: must not be that of --metrics-port")
        return problems
