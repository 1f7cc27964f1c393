"""What an operator can set about the controllers' behaviour, with the defaults of the Go flags.

Process matters (ports, kubeconfigs, logging) are not here but in :mod:`mcm.options`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from types import MappingProxyType
from typing import Final, final

from mcm.api.labels import is_object_name
from mcm.api.validation import DEFAULT_MAX_REPLICAS
from mcm.drain.selection.waves import problems_of

_RESOURCE_EXHAUSTED_RETRY: Final = timedelta(minutes=10)


def _flag(name: str) -> Mapping[str, str]:
    return MappingProxyType({"flag": name})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    """Each field names its flag in ``metadata["flag"]``; :func:`flag_of` reads it."""

    concurrent_syncs: int = field(default=10, metadata=_flag("concurrent-syncs"))
    """Workers of each set and deployment queue."""
    machine_concurrent_syncs: int = field(default=50, metadata=_flag("machine-concurrent-syncs"))
    """Workers of each machine-side queue."""
    min_resync_period: timedelta = field(
        default=timedelta(hours=12), metadata=_flag("min-resync-period")
    )
    """Accepted for compatibility: mirrors here need no resync."""

    # Sets and deployments
    max_replicas: int = field(default=DEFAULT_MAX_REPLICAS, metadata=_flag("max-replicas"))
    """Most replicas that a set or deployment may ask for; more is refused. Zero: no bound."""

    # Machines
    creation_timeout: timedelta = field(
        default=timedelta(minutes=20), metadata=_flag("machine-creation-timeout")
    )
    """From creation until the node must have joined, or the machine is Failed."""
    health_timeout: timedelta = field(
        default=timedelta(minutes=10), metadata=_flag("machine-health-timeout")
    )
    """How long a machine may be unhealthy before it is Failed."""
    drain_timeout: timedelta = field(
        default=timedelta(hours=2), metadata=_flag("machine-drain-timeout")
    )
    """How long a drain may take before pods are deleted by force."""
    inplace_update_timeout: timedelta = field(
        default=timedelta(minutes=20), metadata=_flag("machine-inplace-update-timeout")
    )
    """How long a drained machine's update in place may take before it has failed."""
    max_evict_retries: int | None = field(default=None, metadata=_flag("machine-max-evict-retries"))
    """Evictions tried per pod before it is deleted. None: as many as fit into the drain timeout of
    the machine, one per 20 s."""
    drain_priority_waves: tuple[int, ...] = field(
        default=(), metadata=_flag("machine-drain-priority-waves")
    )
    """Priorities, ascending: pods that reach one leave after those that do not are gone."""
    pv_detach_timeout: timedelta = field(
        default=timedelta(minutes=2), metadata=_flag("machine-pv-detach-timeout")
    )
    """How long to wait for volumes to leave a node: of a pod that was evicted, beyond its grace
    period, and of all pods after a forced drain."""
    pv_reattach_timeout: timedelta = field(
        default=timedelta(seconds=90), metadata=_flag("machine-pv-reattach-timeout")
    )
    """How long an evicted pod's volumes, once they left its node, may take to be attached where its
    successor is. Zero: that is not waited for."""
    drain_adaptive_lanes: bool = field(
        default=False, metadata=_flag("machine-drain-adaptive-lanes")
    )
    """Let more than one pod with exclusively attached volumes leave a node at a time, while their
    attacher is quick; else one after the other."""
    preserve_timeout: timedelta = field(
        default=timedelta(hours=96), metadata=_flag("machine-preserve-timeout")
    )
    """How long a machine is kept for somebody to look at it."""
    node_conditions: tuple[str, ...] = field(
        default=("KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable"),
        metadata=_flag("node-conditions"),
    )
    """Node conditions that mean unhealthy when True (besides Ready not being True)."""
    keep_managed_fields: bool = field(default=False, metadata=_flag("machine-keep-managed-fields"))
    """Leave it to the API server to note who set which field of a set's machines."""
    bootstrap_token_auth_extra_groups: str = field(
        default="", metadata=_flag("bootstrap-token-auth-extra-groups")
    )
    """Comma-separated groups put on bootstrap tokens."""
    resource_exhausted_retry: timedelta = field(
        default=_RESOURCE_EXHAUSTED_RETRY, metadata=_flag("resource-exhausted-retry")
    )
    """Wait after a provider's quota or capacity error; zero means the default."""

    max_concurrent_replacements: int = field(
        default=1, metadata=_flag("machine-max-concurrent-replacements")
    )
    """Machines of one deployment that may move (be made, replaced, taken away) while another one is
    given up, that one included. Zero: none is ever given up for its health."""

    # Safety
    unhealthy_zone_threshold: float = field(
        default=0.55, metadata=_flag("machine-safety-unhealthy-zone-threshold")
    )
    """Share of unhealthy machines of a zone from which on none of it is given up; above 1: never
    so."""
    unhealthy_fleet_threshold: float = field(
        default=0.55, metadata=_flag("machine-safety-unhealthy-fleet-threshold")
    )
    """The same of all machines together."""
    unhealthy_min: int = field(default=3, metadata=_flag("machine-safety-unhealthy-min"))
    """Fewer unhealthy machines than this reach neither threshold."""
    orphan_vms_period: timedelta = field(
        default=timedelta(minutes=15), metadata=_flag("machine-safety-orphan-vms-period")
    )
    sibling_namespaces: tuple[str, ...] = field(default=(), metadata=_flag("sibling-namespaces"))
    """Where other managers look after machines in the same target cluster or cloud account: their
    Nodes and VMs are no orphans."""
    apiserver_statuscheck_timeout: timedelta = field(
        default=timedelta(seconds=30),
        metadata=_flag("machine-safety-apiserver-statuscheck-timeout"),
    )
    """From which length of an outage on health timeouts start anew. Nothing is given up from the
    first request on that is not answered."""
    apiserver_statuscheck_period: timedelta = field(
        default=timedelta(minutes=1),
        metadata=_flag("machine-safety-apiserver-statuscheck-period"),
    )
    safety_up: int = field(default=2, metadata=_flag("safety-up"))
    """Machines above replicas and surge at which a set is frozen; 0 acts as 1 without surge."""
    safety_down: int = field(default=1, metadata=_flag("safety-down"))
    """How far below the freezing limit the count must fall before the set is unfrozen; 0 acts as
    1."""
    overshooting_period: timedelta = field(
        default=timedelta(minutes=1), metadata=_flag("machine-safety-overshooting-period")
    )
    """Time between two looks at a set of which nothing is heard, and for which one that somebody
    unfroze is not frozen again. Zero: neither."""
    autoscaler_scaledown_annotation: bool = field(
        default=True, metadata=_flag("autoscaler-scaledown-annotation-during-rollout")
    )
    """Mark nodes during a rollout, so that the cluster autoscaler leaves them alone."""

    def __post_init__(self) -> None:
        if not self.resource_exhausted_retry:
            object.__setattr__(self, "resource_exhausted_retry", _RESOURCE_EXHAUSTED_RETRY)

    def validate(self) -> list[str]:
        """Return one line for each value that cannot work, naming its flag; empty if all can."""
        problems = [p for f in fields(self) for p in _out_of_range(f, getattr(self, f.name))]
        problems += [
            f"--{flag_of('node_conditions')}: {condition!r} is no condition type"
            for condition in self.node_conditions
            if not condition or condition != condition.strip()
        ]
        problems += [
            f"--{flag_of('sibling_namespaces')}: {name!r} can be no namespace"
            for name in self.sibling_namespaces
            if not is_object_name(name) or "." in name
        ]
        problems += [
            f"--{flag_of('drain_priority_waves')}: {problem}"
            for problem in problems_of(self.drain_priority_waves)
        ]
        problems += [
            f"--{flag_of(name)}: must be a number above 0 (above 1 switches it off)"
            for name in ("unhealthy_zone_threshold", "unhealthy_fleet_threshold")
            if not getattr(self, name) > 0
        ]
        if self.apiserver_statuscheck_period < self.apiserver_statuscheck_timeout:
            problems.append(
                f"--{flag_of('apiserver_statuscheck_period')}: must not be shorter than "
                f"--{flag_of('apiserver_statuscheck_timeout')}"
            )
        return problems


_AT_LEAST_ONE: Final = frozenset({"concurrent_syncs", "machine_concurrent_syncs", "unhealthy_min"})


def _out_of_range(setting: Field[object], value: object) -> list[str]:
    flag = setting.metadata["flag"]
    if setting.name in _AT_LEAST_ONE:
        return [] if isinstance(value, int) and value > 0 else [f"--{flag}: must be at least 1"]
    number = value.total_seconds() if isinstance(value, timedelta) else value
    return (
        [f"--{flag}: must not be negative"]
        if isinstance(number, int | float) and number < 0
        else []
    )


def flag_of(setting: str) -> str:
    """Return the name of the flag (without dashes in front) that sets the field ``setting``."""
    for f in fields(ControllerSettings):
        if f.name == setting:
            return str(f.metadata["flag"])
    raise KeyError(setting)
