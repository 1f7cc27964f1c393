"""The Grafana dashboard: its rows and panels, and the JSON that the chart brings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

Json = dict[str, object]

_SELECTED: Final = 'namespace=~"$namespace", job=~"$job", instance=~"$instance"'
_WIDTH: Final = 24
_HEIGHT: Final = 8
_PER_ROW: Final = 3


@dataclass(frozen=True)
class Query:
    """PromQL in which ``%s`` stands for the selected instances, and how its series are named."""

    expr: str
    legend: str = ""

    def promql(self) -> str:
        return self.expr.replace("%s", _SELECTED)


@dataclass(frozen=True)
class Panel:
    """``description`` says what to see in it."""

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


def _one(
    title: str, description: str, expr: str, legend: str = "", unit: str = "short", kind: str = ""
) -> Panel:
    return Panel(title, description, (Query(expr, legend),), unit, kind or "timeseries")


def _p99(family: str, by: str = "") -> str:
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile(0.99, sum by ({labels}) (rate({family}_bucket{{%s}}[5m])))"


OVERVIEW = Row(
    "Overview",
    (
        Panel(
            "Machines by phase",
            "Failed and CrashLoopBackOff should be none, Pending and Terminating pass.",
            tuple(
                Query(
                    f"count(mcm_machine_current_status_phase{{%s}} == {value}) or vector(0)", name
                )
                for name, value in (
                    ("Running", 1),
                    ("Pending and others", 0),
                    ("Unknown", -1),
                    ("CrashLoopBackOff", -2),
                    ("Failed", -3),
                    ("Terminating", -4),
                )
            ),
        ),
        Panel(
            "Wanted and available",
            "Over all deployments; available stays below wanted where something does not get on.",
            (
                Query("sum(mcm_machine_deployment_info_spec_replicas{%s})", "wanted"),
                Query("sum(mcm_machine_deployment_status_available_replicas{%s})", "available"),
                Query("sum(mcm_machine_deployment_status_updated_replicas{%s})", "updated"),
            ),
        ),
        Panel(
            "Objects",
            "How large the fleet is.",
            (
                Query("max(mcm_machine_items_total{%s})", "machines"),
                Query("max(mcm_machine_set_items_total{%s})", "sets"),
                Query("max(mcm_machine_deployment_items_total{%s})", "deployments"),
            ),
            kind="stat",
        ),
        _one(
            "Rollouts",
            "Machines that a deployment has yet to replace.",
            "sum by (name) (mcm_machine_deployment_status_replicas{%s}"
            " - mcm_machine_deployment_status_updated_replicas{%s})",
            "{{name}}",
        ),
        _one(
            "Stopped rollouts, frozen sets",
            "1 for each condition that says so.",
            "max by (name, condition)"
            ' (mcm_machine_set_status_condition{condition="Frozen", %s} == 1'
            ' or mcm_machine_deployment_status_condition{condition="Frozen", %s} == 1'
            ' or (mcm_machine_deployment_status_condition{condition="Progressing", %s} == 0) + 1)',
            "{{name}} {{condition}}",
        ),
        _one(
            "Not ready",
            "Machines of each set that are there and not ready.",
            "sum by (name) (mcm_machine_set_status_replicas{%s}"
            " - mcm_machine_set_status_ready_replicas{%s})",
            "{{name}}",
        ),
    ),
)
LIFE = Row(
    "The life of machines",
    (
        Panel(
            "Last durations",
            "How long the last machine of each deployment took.",
            tuple(
                Query(
                    f"max by (machine_deployment) (mcm_machine_{what}_duration_seconds{{%s}})",
                    f"{what} {{{{machine_deployment}}}}",
                )
                for what in ("create", "join", "drain", "delete")
            ),
            unit="s",
        ),
        _one(
            "Failed to join",
            "Machines an hour that were given up before they were Nodes.",
            "sum by (machine_deployment) (increase(mcm_machine_num_failed_join{%s}[1h]))",
            "{{machine_deployment}}",
        ),
        _one(
            "Provider: calls",
            "Verbs of the driver a second.",
            "sum by (operation)"
            " (rate(mcm_cloud_api_driver_request_duration_seconds_count{%s}[5m]))",
            "{{operation}}",
            "reqps",
        ),
        _one(
            "Provider: 99th percentile",
            "How long verbs take.",
            _p99("mcm_cloud_api_driver_request_duration_seconds", "operation"),
            "{{operation}}",
            "s",
        ),
        _one(
            "Provider: errors",
            "Failed verbs a second, by code.",
            "sum by (operation, error_code)"
            " (rate(mcm_cloud_api_driver_requests_failed_total{%s}[5m]))",
            "{{operation}} {{error_code}}",
            "reqps",
        ),
        Panel(
            "Held back",
            "Machines that wait for the provider, or that protection of the fleet holds.",
            (
                Query(
                    "sum by (machine_class, error_code)"
                    " (mcm_machine_creation_held_back_machines{%s})",
                    "creation of {{machine_class}}: {{error_code}}",
                ),
                Query("sum(mcm_machine_controller_held_machines{%s})", "meltdown protection"),
                Query("max(mcm_machine_controller_frozen{%s})", "API server out of reach"),
            ),
        ),
        _one(
            "Unhealthy machines",
            "Their share; above the threshold none is replaced.",
            "max by (zone) (mcm_machine_controller_unhealthy_ratio{%s})",
            "{{zone}}",
            "percentunit",
        ),
        _one(
            "Orphan VMs",
            "VMs that no machine stands for.",
            "sum by (machine_class) (mcm_orphan_vms{%s})",
            "{{machine_class}}",
        ),
        _one(
            "Replaced since unhealthy",
            "Machines an hour.",
            "sum(increase(mcm_machine_stale_machines_total{%s}[1h]))",
            "replaced",
        ),
    ),
)
DRAINS = Row(
    "Drains",
    (
        _one(
            "Under way",
            "Drains of this process.",
            "sum by (purpose) (mcm_drains_under_way{%s})",
            "{{purpose}}",
        ),
        _one(
            "Pods waited for",
            "By what keeps them; held_by_budget and overdue should pass.",
            "sum by (cause) (mcm_drain_pods{%s})",
            "{{cause}}",
        ),
        _one(
            "Requests",
            "Evictions and deletions a second, by answer.",
            "sum by (step, answer) (rate(mcm_drain_requests_total{%s}[5m]))",
            "{{step}}: {{answer}}",
            "reqps",
        ),
        Panel(
            "99th percentiles",
            "From refusal to acceptance, from there to the pod's end; volumes.",
            tuple(
                Query(_p99(f"mcm_drain_{what}_duration_seconds"), what)
                for what in ("hold", "leave", "detach", "reattach")
            ),
            unit="s",
        ),
    ),
)
WORK = Row(
    "Queues and reconciles",
    (
        _one("Depth", "Keys that wait.", "sum by (name) (mcm_workqueue_depth{%s})", "{{name}}"),
        _one(
            "Waiting: 99th percentile",
            "How long keys wait for a worker.",
            _p99("mcm_workqueue_queue_duration_seconds", "name"),
            "{{name}}",
            "s",
        ),
        _one(
            "Longest work under way",
            "Rises where a worker is stuck.",
            "max by (name) (mcm_workqueue_longest_running_processor_seconds{%s})",
            "{{name}}",
            "s",
        ),
        _one(
            "Reconciles",
            "A second, by result.",
            "sum by (controller, result) (rate(mcm_controller_reconcile_total{%s}[5m]))",
            "{{controller}} {{result}}",
            "ops",
        ),
        _one(
            "Reconciles: 99th percentile",
            "How long one takes.",
            _p99("mcm_controller_reconcile_duration_seconds", "controller"),
            "{{controller}}",
            "s",
        ),
        _one(
            "Retries",
            "Rate-limited, a second.",
            "sum by (name) (rate(mcm_workqueue_retries_total{%s}[5m]))",
            "{{name}}",
            "ops",
        ),
    ),
)
REQUESTS = Row(
    "Requests to API servers",
    (
        _one(
            "Requests",
            "A second, by code.",
            "sum by (code) (rate(rest_client_requests_total{%s}[5m]))",
            "{{code}}",
            "reqps",
        ),
        _one(
            "Writes",
            "A second, by resource; a steady fleet has none but leases.",
            'sum by (resource) (rate(rest_client_requests_total{method!="GET", %s}[5m]))',
            "{{resource}}",
            "reqps",
        ),
        _one(
            "Writes for a machine created",
            "To machines, Nodes, Secrets and sets, over an hour.",
            "sum(increase(rest_client_requests_total{"
            'method!="GET", resource!~"leases.*|events.*", %s}[1h]))'
            " / clamp_min(sum(increase(mcm_cloud_api_driver_request_duration_seconds_count{"
            'operation="create_machine", %s}[1h])), 1)',
            "writes",
        ),
        _one(
            "99th percentile",
            "Until the whole answer is there.",
            _p99("rest_client_request_latency_seconds", "verb"),
            "{{verb}}",
            "s",
        ),
        _one(
            "Waiting for a turn",
            "99th percentile: rate limit and concurrency cap.",
            _p99("rest_client_rate_limiter_duration_seconds", "verb"),
            "{{verb}}",
            "s",
        ),
        _one(
            "Repeated",
            "A second, by what made it so; 429 is a server that throttles.",
            "sum by (code) (rate(rest_client_request_retries_total{%s}[5m]))",
            "{{code}}",
            "reqps",
        ),
    ),
)
INFORMERS = Row(
    "Informers",
    (
        _one(
            "Objects",
            "In each mirror.",
            "sum by (name) (mcm_store_objects{%s})",
            "{{name}}",
        ),
        _one(
            "Events",
            "A second.",
            "sum by (name) (rate(mcm_reflector_events_total{%s}[5m]))",
            "{{name}}",
            "ops",
        ),
        _one(
            "Received",
            "By watches.",
            "sum by (name) (rate(mcm_reflector_received_bytes_total{%s}[5m]))",
            "{{name}}",
            "Bps",
        ),
        _one(
            "Last heard",
            "Age of the server's last sign; a minute or so at most.",
            "max by (name) (mcm_reflector_last_heard_seconds{%s})",
            "{{name}}",
            "s",
        ),
        _one(
            "Lists and watches",
            "Begun, an hour.",
            "sum by (name) (increase(mcm_reflector_lists_total{%s}[1h])"
            " + increase(mcm_reflector_watches_total{%s}[1h]))",
            "{{name}}",
        ),
        _one(
            "Unreadable",
            "Objects that do not have the form of their type.",
            "sum by (name) (mcm_store_unreadable{%s})",
            "{{name}}",
        ),
    ),
)
PROCESS = Row(
    "Leader election and process",
    (
        _one(
            "Who leads",
            "1 for the replica that holds the lease.",
            "max by (instance, name) (leader_election_master_status{%s})",
            "{{instance}} {{name}}",
        ),
        _one(
            "CPU",
            "Cores.",
            "sum by (instance) (rate(process_cpu_seconds_total{%s}[5m]))",
            "{{instance}}",
        ),
        _one(
            "Memory",
            "Resident.",
            "max by (instance) (process_resident_memory_bytes{%s})",
            "{{instance}}",
            "bytes",
        ),
        _one(
            "Event loop: 99th percentile of lag",
            "Below a tenth of a second, if all is well.",
            _p99("mcm_event_loop_lag_seconds", "instance"),
            "{{instance}}",
            "s",
        ),
        _one(
            "Kubernetes events",
            "Written a second.",
            "sum by (verb) (rate(mcm_events_writes_total{%s}[5m]))",
            "{{verb}}",
            "ops",
        ),
        _one(
            "Open files",
            "Connections among them.",
            "max by (instance) (process_open_fds{%s})",
            "{{instance}}",
        ),
    ),
)
ROWS: Final[Sequence[Row]] = (OVERVIEW, LIFE, DRAINS, WORK, REQUESTS, INFORMERS, PROCESS)


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query with the place that it is found at."""
    for row in ROWS:
        for panel in row.panels:
            for query in panel.queries:
                yield f"{row.title} / {panel.title} / {query.legend}", query.promql()


def as_json() -> str:
    """Return ``charts/mcm/files/dashboards/mcm.json``."""
    dashboard: Json = {
        "uid": "mcm-machine-controller-manager",
        "title": "Machine controller manager",
        "tags": ["mcm", "machines"],
        "schemaVersion": 38,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }
    return json.dumps(dashboard, indent=1, ensure_ascii=False) + "\n"


def _variables() -> Iterator[Json]:
    source = {"name": "datasource", "label": "Data source", "type": "datasource"}
    yield {**source, "query": "prometheus"}
    for name, within in _SELECTIONS:
        query = f"label_values(mcm_workqueue_depth{{{within}}}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": _DATASOURCE,
            "query": {"query": query, "refId": name},
            "definition": query,
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
            "sort": 1,
        }


_SELECTIONS: Final = (
    ("namespace", ""),
    ("job", 'namespace=~"$namespace"'),
    ("instance", 'namespace=~"$namespace", job=~"$job"'),
)
_DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}


def _panels() -> Iterator[Json]:
    ident, top = 0, 0
    for row in ROWS:
        ident += 1
        place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        yield {"id": ident, "type": "row", "title": row.title, "gridPos": place, "panels": []}
        top += 1
        width = _WIDTH // _PER_ROW
        for number, panel in enumerate(row.panels):
            ident += 1
            down, right = divmod(number, _PER_ROW)
            at = {"x": right * width, "y": top + down * _HEIGHT, "w": width, "h": _HEIGHT}
            yield _panel(panel, ident, at)
        top += -(-len(row.panels) // _PER_ROW) * _HEIGHT


def _panel(panel: Panel, ident: int, at: dict[str, int]) -> Json:
    targets = [
        {
            "refId": chr(ord("A") + number),
            "datasource": _DATASOURCE,
            "expr": query.promql(),
            "legendFormat": query.legend,
        }
        for number, query in enumerate(panel.queries)
    ]
    return {
        "id": ident,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": at,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {},
    }
