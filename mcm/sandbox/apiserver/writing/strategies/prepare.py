"""Which strategy a built-in kind has."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.core import CORE_STRATEGIES
from mcm.sandbox.apiserver.writing.strategies.network_policies import network_policy
from mcm.sandbox.apiserver.writing.strategies.priorities import priority_class
from mcm.sandbox.apiserver.writing.strategies.rbac import RBAC_STRATEGIES
from mcm.sandbox.apiserver.writing.strategies.services import service
from mcm.sandbox.apiserver.writing.strategies.strategy import Strategy
from mcm.sandbox.apiserver.writing.strategies.webhooks import WEBHOOK_STRATEGIES

_STRATEGIES: Mapping[str, Strategy] = MappingProxyType(
    {
        **CORE_STRATEGIES,
        **RBAC_STRATEGIES,
        **WEBHOOK_STRATEGIES,
        "networkpolicies.networking.k8s.io": network_policy,
        "priorityclasses.scheduling.k8s.io": priority_class,
        "services": service,
    }
)


def prepare(state: ServerState, info: ResourceInfo, obj: JSONObject, live: Stored | None) -> None:
    """Apply the strategy of a built-in kind, if it has one."""
    strategy = _STRATEGIES.get(info.storage)
    if strategy is not None:
        strategy(state, info, obj, live)
