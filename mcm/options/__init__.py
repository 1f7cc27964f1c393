"""What the process was told, as one frozen object; a module for each group of flags.

Each group is a dataclass whose ``validate`` names the flag in each problem; :class:`Options` holds
them all, and judges what concerns two of them.
"""

from mcm.options.api_requests import ApiRequests
from mcm.options.clusters import IN_CLUSTER, NO_TARGET, Clusters
from mcm.options.config_file import ConfigFile
from mcm.options.controllers import ControllerChoice
from mcm.options.endpoints import Endpoints
from mcm.options.leader_election import LeaderElection
from mcm.options.logging import LogFormat, Logging
from mcm.options.options import Options
from mcm.options.profiling import Profiling
from mcm.options.provider import ProviderChoice
from mcm.options.sharding import Sharding
from mcm.options.tracing import Tracing
from mcm.options.webhook import Webhook
from mcm.options.without_effect import WithoutEffect

__all__ = [
    "IN_CLUSTER",
    "NO_TARGET",
    "ApiRequests",
    "Clusters",
    "ConfigFile",
    "ControllerChoice",
    "Endpoints",
    "LeaderElection",
    "LogFormat",
    "Logging",
    "Options",
    "Profiling",
    "ProviderChoice",
    "Sharding",
    "Tracing",
    "Webhook",
    "WithoutEffect",
]
