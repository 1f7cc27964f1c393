"""The flags of the manager, one row each, by the groups in which an operator looks for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

from mcm.configuration.flag import Flag, Group
from mcm.controllers.settings import ControllerSettings
from mcm.options import (
    ApiRequests,
    Clusters,
    ConfigFile,
    ControllerChoice,
    Endpoints,
    LeaderElection,
    Logging,
    Profiling,
    ProviderChoice,
    Sharding,
    Tracing,
    Webhook,
    WithoutEffect,
)

_FIELDS_OF_SETTINGS: Final = {
    field.metadata["flag"]: field.name for field in dataclasses.fields(ControllerSettings)
}


def _setting(name: str, text: str) -> Flag:
    """A flag of the controllers, whose name stands beside their field."""
    return Flag(name, ControllerSettings, _FIELDS_OF_SETTINGS[name], text)


def _ignored(name: str, text: str) -> Flag:
    return Flag(name, WithoutEffect, name.replace("-", "_"), text)


_LOGS: Final = "Log lines go to standard error, and nowhere else."

GROUPS: Final = (
    Group("Clusters and configuration", (
        Flag("control-kubeconfig", Clusters, "control_kubeconfig",
             "Kubeconfig of the cluster with the machine objects; inClusterConfig for the pod's "
             "own; empty: the target's."),
        Flag("target-kubeconfig", Clusters, "target_kubeconfig",
             "Kubeconfig of the cluster the machines join; none for no such cluster; empty: the "
             "pod's own."),
        Flag("namespace", Clusters, "namespace",
             "Namespace of the machine objects and of the leases."),
        Flag("config", ConfigFile, "path",
             "YAML file that sets flags by their names; what the command line or a variable MCM_… "
             "sets goes before it."),
    )),
    Group("What runs", (
        Flag("controllers", ControllerChoice, "words",
             "Controllers to run, by commas: * for all, NAME, -NAME for all but it; "
             "set-controllers and machine-controllers are the groups of the Go programs "
             "machine-controller-manager and machine-controller."),
        Flag("shard-name", Sharding, "name",
             "Name of this shard, where several managers share a namespace; empty: there are no "
             "shards."),
        Flag("shard-selector", Sharding, "selector",
             "Label selector, as kubectl's, of the shard's MachineDeployments, and of MachineSets "
             "and Machines without one."),
        Flag("provider", ProviderChoice, "name",
             "Machine provider (an entry point in mcm.providers)."),
        Flag("simulate-cloud", ProviderChoice, "simulate_cloud",
             "With a provider whose cloud is simulated: also run that cloud in this process."),
        _setting("concurrent-syncs", "Workers for each of the set controllers."),
        _setting("machine-concurrent-syncs", "Workers for each of the machine controllers."),
        _setting("max-replicas", "Most replicas a set or deployment may ask for; 0: no bound."),
    )),
    Group("Machines: how long things may take", (
        _setting("machine-creation-timeout", "Time a machine has to join before it is Failed."),
        _setting("machine-inplace-update-timeout",
                 "Time an in-place update of a drained node may take."),
        _setting("machine-preserve-timeout",
                 "How long a preserved machine is kept, unless it says otherwise."),
        _setting("resource-exhausted-retry",
                 "Time before a creation refused for quota or capacity is tried again."),
        _setting("bootstrap-token-auth-extra-groups",
                 "Extra groups of bootstrap tokens, by commas."),
        _setting("machine-keep-managed-fields",
                 "Let the API server note who set which field of machines of sets: it makes "
                 "changes of them cost it half as much again."),
    )),
    Group("Machines: health", (
        _setting("machine-health-timeout",
                 "Time a machine may be unhealthy before it is Failed."),
        _setting("node-conditions",
                 "Node conditions that make a machine unhealthy, separated by commas."),
        _setting("machine-max-concurrent-replacements",
                 "Machines of a deployment on the move while an unhealthy one is Failed, that one "
                 "included."),
        _setting("machine-safety-unhealthy-zone-threshold",
                 "Share of unhealthy machines of a zone at which none of it turns Failed; above 1: "
                 "never."),
        _setting("machine-safety-unhealthy-fleet-threshold",
                 "Share of unhealthy machines of all at which none turns Failed; above 1: never."),
        _setting("machine-safety-unhealthy-min",
                 "Fewer unhealthy machines reach neither threshold."),
    )),
    Group("Machines: drain", (
        _setting("machine-drain-timeout",
                 "Time a drain may take before the deletion is forced."),
        _setting("machine-max-evict-retries",
                 "Evictions of a pod, 20 s apart, before it is deleted; empty: as many as fit into "
                 "the drain timeout."),
        _setting("machine-drain-priority-waves",
                 "Pod priorities, ascending, by commas; pods below each leave first. None: all at "
                 "once."),
        _setting("machine-pv-detach-timeout",
                 "Time volumes have to leave a node, beyond the grace period of their pod."),
        _setting("machine-pv-reattach-timeout",
                 "Time they then have to be attached where the pod's successor is; 0: not waited "
                 "for."),
        _setting("machine-drain-adaptive-lanes",
                 "Drain several pods with volumes of one attacher at a time, while it is quick."),
    )),
    Group("Safety", (
        _setting("sibling-namespaces",
                 "Namespaces whose managers share the target cluster or the cloud account with "
                 "this one: Nodes and VMs of their machines are no orphans."),
        _setting("machine-safety-orphan-vms-period",
                 "Time between searches for VMs without a machine."),
        _setting("machine-safety-apiserver-statuscheck-timeout",
                 "Outage of an API server after which health timeouts start anew; none is Failed "
                 "meanwhile."),
        _setting("machine-safety-apiserver-statuscheck-period",
                 "Time between checks of the API servers."),
        _setting("safety-up", "Machines above replicas and surge at which a set is frozen."),
        _setting("safety-down", "Machines below that limit at which it is unfrozen."),
        _setting("machine-safety-overshooting-period",
                 "Longest time between checks of a set; for so long none is frozen that somebody "
                 "unfroze."),
    )),
    Group("Rollouts", (
        _setting("autoscaler-scaledown-annotation-during-rollout",
                 "Keep the autoscaler off nodes during a rollout."),
    )),
    Group("Leader election", (
        Flag("leader-elect", LeaderElection, "enabled", "Work only while holding the leases."),
        Flag("leader-elect-lease-duration", LeaderElection, "lease_duration",
             "How long a lease is respected after its last renewal."),
        Flag("leader-elect-renew-deadline", LeaderElection, "renew_deadline",
             "How long a leader tries to renew before it gives up."),
        Flag("leader-elect-retry-period", LeaderElection, "retry_period",
             "Time between attempts."),
        Flag("leader-elect-resource-lock", LeaderElection, "resource_lock",
             "What the lock is; leases, and nothing else."),
    )),
    Group("Load on the API servers", (
        Flag("kube-api-qps", ApiRequests, "qps",
             "Client-side limit of requests per second; 0 leaves it to the server's fairness."),
        Flag("kube-api-burst", ApiRequests, "burst", "Burst above --kube-api-qps."),
        Flag("max-in-flight", ApiRequests, "max_in_flight", "Most requests under way at once."),
    )),
    Group("Endpoints and metrics", (
        Flag("address", Endpoints, "address", "IP address of the HTTP endpoints."),
        Flag("port", Endpoints, "port",
             "Port of /healthz and /readyz, and of all other endpoints without --metrics-port."),
        Flag("metrics-port", Endpoints, "metrics_port",
             "Port of /metrics, /configz and /debug, apart from the probes; 0: --port."),
        Flag("metrics-tls-cert-dir", Endpoints, "metrics_tls_cert_dir",
             "Folder of tls.crt and tls.key for the port of /metrics, which may be replaced at any "
             "time; empty: no TLS."),
        Flag("metrics-authorization", Endpoints, "metrics_authorization",
             "Answer all but probes only to bearer tokens whose user may get the path (TokenReview "
             "and SubjectAccessReview in the control cluster)."),
        Flag("metrics-token-audiences", Endpoints, "metrics_token_audiences",
             "Audiences of which such a token must be meant for one, by commas; empty: the API "
             "server's own."),
        Flag("profiling", Profiling, "profiling", "Serve profiles and dumps under /debug."),
        Flag("contention-profiling", Profiling, "contention_profiling",
             "Also record what the event loop stands still in, for /debug/pprof/block."),
        Flag("otlp-endpoint", Tracing, "otlp_endpoint",
             "URL of an OpenTelemetry backend that traces are sent to (OTLP over HTTP; needs the "
             "extra mcm[tracing]); empty: OTEL_EXPORTER_OTLP_ENDPOINT, or no traces."),
    )),
    Group("Webhook", (
        Flag("webhook-port", Webhook, "port",
             "Port of the validating webhook, over TLS; 0: none."),
        Flag("webhook-cert-dir", Webhook, "cert_dir",
             "Folder of its tls.crt and tls.key, which may be replaced at any time."),
    )),
    Group("Logs", (
        Flag("log-format", Logging, "format", "Form of the log lines."),
        Flag("v", Logging, "verbosity", "Log verbosity; 4 and more is debug."),
        Flag("vmodule", Logging, "vmodule",
             "Verbosity of single modules or packages, as leaderelection=4,drain*=5; only what is "
             "more than --v counts."),
    )),
    Group("Accepted without effect", (
        _setting("min-resync-period",
                 "Mirrors here are held to the server by watches, and need no resync."),
        _ignored("cloud-provider", "Providers are chosen by --provider."),
        _ignored("controller-start-interval", "Controllers start together."),
        _ignored("kube-api-content-type", "JSON is spoken."),
        _ignored("add-dir-header", _LOGS),
        _ignored("alsologtostderr", _LOGS),
        _ignored("log-backtrace-at", _LOGS),
        _ignored("log-dir", _LOGS),
        _ignored("log-file", _LOGS),
        _ignored("log-file-max-size", _LOGS),
        _ignored("log-flush-frequency", "Each line is written at once."),
        _ignored("logtostderr", _LOGS),
        _ignored("one-output", _LOGS),
        _ignored("skip-headers", _LOGS),
        _ignored("skip-log-headers", _LOGS),
        _ignored("stderrthreshold", _LOGS),
    )),
)  # fmt: skip

WITHOUT_EFFECT: Final = GROUPS[-1]


def all_flags() -> Iterator[Flag]:
    """Yield the flags in the order in which they are shown."""
    for group in GROUPS:
        yield from group.flags
