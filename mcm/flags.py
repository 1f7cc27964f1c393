"""The command line's flags as one table: Go-style names, types and help, bound to the options.

Flags of both of the Go original's processes are accepted, dashes or underscores alike; those it
parses without effect are accepted without effect, too.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar, final

import click

from mcm.api.durations import format_duration, parse_duration
from mcm.controllers.settings import ControllerSettings
from mcm.options import LeaderElection, Options, Webhook

F = TypeVar("F", bound=Callable[..., object])


@final
class GoDuration(click.ParamType[timedelta]):
    """``90s``, ``1h30m``; shown and read the way Go writes durations."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(f"{error} (expected a duration such as 90s, 10m or 1h30m)", param, ctx)


@final
class GoBool(click.ParamType[bool]):
    """``--flag``, ``--flag=true``, ``--flag=false``, in all spellings of Go's ``ParseBool``."""

    name = "bool"
    _WORDS: Mapping[str, bool] = {
        **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
        **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
    }

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> bool:
        if isinstance(value, bool):
            return value
        if (word := self._WORDS.get(str(value))) is None:
            self.fail(f"{value!r} is neither true nor false", param, ctx)
        return word


@final
class CommaList(click.ParamType[tuple[str, ...]]):
    """``a,b``; blanks around the commas do not count."""

    name = "list"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        return tuple(item.strip() for item in str(value).split(",") if item.strip())


@final
class CommaNumbers(click.ParamType[tuple[int, ...]]):
    """``0,1000``; blanks around the commas do not count."""

    name = "numbers"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        items = (item.strip() for item in str(value).split(","))
        return tuple(self._number(item, param, ctx) for item in items if item)

    def _number(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if not _NUMBER.fullmatch(text):
            self.fail(f"{text!r} is no whole number (expected some, as 0,1000)", param, ctx)
        return int(text)


_NUMBER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Flag:
    """A flag and the field it sets: of Options, LeaderElection or ControllerSettings."""

    name: str
    owner: type
    field: str
    help: str
    choices: tuple[str, ...] = ()


_FLAGS = (
    _Flag("control-kubeconfig", Options, "control_kubeconfig",
          "Kubeconfig of the cluster with the machine objects; inClusterConfig for the pod's own; "
          "empty: the target's."),
    _Flag("target-kubeconfig", Options, "target_kubeconfig",
          "Kubeconfig of the cluster the machines join; none for no such cluster; "
          "empty: the pod's own."),
    _Flag("namespace", Options, "namespace", "Namespace of the machine objects and of the lease."),
    _Flag("provider", Options, "provider", "Machine provider (an entry point in mcm.providers)."),
    _Flag("simulate-cloud", Options, "simulate_cloud",
          "With a provider whose cloud is simulated: also run that cloud in this process."),
    _Flag("address", Options, "address", "IP address of the HTTP endpoints."),
    _Flag("port", Options, "port", "Port of /metrics, /healthz, /readyz and /configz."),
    _Flag("webhook-port", Webhook, "port",
          "Port of the validating webhook, over TLS; 0: none."),
    _Flag("webhook-cert-dir", Webhook, "cert_dir",
          "Folder of its tls.crt and tls.key, which may be replaced at any time."),
    _Flag("log-format", Options, "log_format", "Form of the log lines.", ("text", "json")),
    _Flag("v", Options, "verbosity", "Log verbosity; 4 and more is debug."),
    _Flag("kube-api-qps", Options, "kube_api_qps",
          "Client-side limit of requests per second; 0 leaves it to the server's fairness."),
    _Flag("kube-api-burst", Options, "kube_api_burst", "Burst above --kube-api-qps."),
    _Flag("max-in-flight", Options, "max_in_flight", "Most requests under way at once."),
    _Flag("leader-elect", LeaderElection, "enabled", "Work only while holding the leases."),
    _Flag("leader-elect-lease-duration", LeaderElection, "lease_duration",
          "How long a lease is respected after its last renewal."),
    _Flag("leader-elect-renew-deadline", LeaderElection, "renew_deadline",
          "How long a leader tries to renew before it gives up."),
    _Flag("leader-elect-retry-period", LeaderElection, "retry_period", "Time between attempts."),
)  # fmt: skip

_SETTINGS_HELP = {
    "min-resync-period": "Accepted for compatibility; mirrors here need no resync.",
    "concurrent-syncs": "Workers for each of the set controllers.",
    "machine-concurrent-syncs": "Workers for each of the machine controllers.",
    "max-replicas": "Most replicas a set or deployment may ask for; 0: no bound.",
    "machine-creation-timeout": "Time a machine has to join before it is Failed.",
    "machine-health-timeout": "Time a machine may be unhealthy before it is Failed.",
    "machine-drain-timeout": "Time a drain may take before the deletion is forced.",
    "machine-inplace-update-timeout": "Time an in-place update of a drained node may take.",
    "machine-preserve-timeout": "How long a preserved machine is kept, unless it says otherwise.",
    "machine-max-evict-retries": "Evictions of a pod before it is deleted.",
    "machine-drain-priority-waves":
        "Pod priorities, ascending, by commas; pods below each leave first. None: all at once.",
    "machine-pv-detach-timeout":
        "Time volumes have to leave a node, beyond the grace period of their pod.",
    "machine-pv-reattach-timeout":
        "Time they then have to be attached where the pod's successor is; 0: not waited for.",
    "machine-drain-adaptive-lanes":
        "Drain several pods with volumes of one attacher at a time, while it is quick.",
    "machine-max-concurrent-replacements":
        "Machines of a deployment on the move while an unhealthy one is Failed, that one included.",
    "machine-safety-unhealthy-zone-threshold":
        "Share of unhealthy machines of a zone at which none of it turns Failed; above 1: never.",
    "machine-safety-unhealthy-fleet-threshold":
        "Share of unhealthy machines of all at which none turns Failed; above 1: never.",
    "machine-safety-unhealthy-min": "Fewer unhealthy machines reach neither threshold.",
    "machine-safety-orphan-vms-period": "Time between searches for VMs without a machine.",
    "machine-safety-apiserver-statuscheck-timeout":
        "Outage of an API server after which health timeouts start anew; none is Failed meanwhile.",
    "machine-safety-apiserver-statuscheck-period": "Time between checks of the API servers.",
    "machine-safety-overshooting-period":
        "Longest time between checks of a set; for so long none is frozen that somebody unfroze.",
    "safety-up": "Machines above replicas and surge at which a set is frozen.",
    "safety-down": "Machines below that limit at which it is unfrozen.",
    "node-conditions": "Node conditions that make a machine unhealthy, separated by commas.",
    "resource-exhausted-retry":
        "Time before a creation refused for quota or capacity is tried again.",
    "bootstrap-token-auth-extra-groups": "Extra groups of bootstrap tokens, by commas.",
    "autoscaler-scaledown-annotation-during-rollout":
        "Keep the autoscaler off nodes during a rollout.",
}  # fmt: skip

_OF_NUMBERS = frozenset({"machine-drain-priority-waves"})
"""Flags whose items are numbers: an empty default does not tell."""

WITHOUT_EFFECT = (
    "cloud-provider",
    "contention-profiling",
    "controller-start-interval",
    "kube-api-content-type",
    "leader-elect-resource-lock",
    "log-flush-frequency",
    "logtostderr",
    "profiling",
    "vmodule",
)


def manager_flags(**defaults: str) -> Callable[[F], F]:
    """Return a decorator that gives a command all flags of ``mcm run``; :func:`options_from` reads
    them back. ``defaults`` are the command's own, by parameter name."""

    def decorated(function: F) -> F:
        for name in reversed(WITHOUT_EFFECT):
            function = click.option(
                f"--{name}", is_flag=False, flag_value="true", default="", hidden=True
            )(function)
        for flag in reversed(_all_flags()):
            function = _option(flag, defaults.get(_parameter(flag), _default(flag)))(function)
        return function

    return decorated


def options_from(values: Mapping[str, Any]) -> Options:
    """Build the options from a command's parameters (as named by :func:`manager_flags`)."""
    picked: dict[type, dict[str, object]] = {}
    for flag in _all_flags():
        picked.setdefault(flag.owner, {})[flag.field] = values[_parameter(flag)]
    return Options(
        **picked[Options],  # type: ignore[arg-type]
        leader_election=LeaderElection(**picked[LeaderElection]),  # type: ignore[arg-type]
        webhook=Webhook(**picked[Webhook]),  # type: ignore[arg-type]
        settings=ControllerSettings(**picked[ControllerSettings]),  # type: ignore[arg-type]
    )


def _all_flags() -> tuple[_Flag, ...]:
    """The process's flags, then the controllers', whose names stand beside their fields."""
    settings = tuple(
        _Flag(name, ControllerSettings, field.name, _settings_help(name))
        for field in dataclasses.fields(ControllerSettings)
        if (name := field.metadata["flag"])
    )
    return _FLAGS + settings


def _settings_help(name: str) -> str:
    return _SETTINGS_HELP.get(name, "")


def _parameter(flag: _Flag) -> str:
    return flag.name.replace("-", "_")


def _option(flag: _Flag, default: object) -> Callable[[F], F]:
    if flag.choices:
        return click.option(
            f"--{flag.name}", default=default, show_default=True,
            type=click.Choice(flag.choices), help=flag.help,
        )  # fmt: skip
    if isinstance(default, bool):
        return click.option(
            f"--{flag.name}", is_flag=False, flag_value=True, default=str(default).lower(),
            type=GoBool(), show_default=True, help=flag.help,
        )  # fmt: skip
    if isinstance(default, timedelta):
        return click.option(
            f"--{flag.name}", default=format_duration(default), type=GoDuration(),
            show_default=True, help=flag.help,
        )  # fmt: skip
    if isinstance(default, tuple):
        return click.option(
            f"--{flag.name}", default=",".join(default),
            type=CommaNumbers() if flag.name in _OF_NUMBERS else CommaList(),
            show_default=True, help=flag.help,
        )  # fmt: skip
    return click.option(
        f"--{flag.name}",
        default=default,
        type=type(default),
        show_default=default != "",
        help=flag.help,
    )


def _default(flag: _Flag) -> object:
    for field in dataclasses.fields(flag.owner):
        if field.name == flag.field:
            return field.default
    raise AssertionError(f"{flag.owner.__name__} has no field {flag.field}")
