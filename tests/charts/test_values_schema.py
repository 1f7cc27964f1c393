"""Values that cannot be meant are refused before anything is installed, each by its name."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from mcm.configuration.configuration import FLAGS
from mcm.configuration.file import read_file
from mcm.configuration.flag import CONFIG, Flag
from tests.charts.helm_binary import CHART, Helm

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS = yaml.safe_load((CHART / "values.yaml").read_text())

_OF_THE_CHART = frozenset((
    "namespace", "provider", "address", "port", "log-format", "v", "control-kubeconfig",
    "target-kubeconfig", "leader-elect", "leader-elect-lease-duration",
    "leader-elect-renew-deadline", "leader-elect-retry-period", "shard-name", "shard-selector",
    "simulate-cloud", "metrics-port", "metrics-tls-cert-dir", "metrics-authorization",
    "webhook-port", "webhook-cert-dir", CONFIG,
))  # fmt: skip
"""Flags that have values of their own."""


def nested(path: str, value: object) -> dict[str, Any]:
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


REFUSED: tuple[tuple[str, object], ...] = (
    ("replicas", 2),
    ("manager.flags", {}),
    ("replicaCount", "two"),
    ("replicaCount", -1),
    ("mode", "both"),
    ("fullnameOverride", "1st"),
    ("image.tag", "a tag"),
    ("image.digest", "0123"),
    ("image.pullPolicy", "always"),
    ("manager.namespace", "Not_A_Namespace"),
    ("manager.port", 0),
    ("manager.logFormat", "xml"),
    ("manager.extraArgs", ["machine-drain-timeout=1m"]),
    ("manager.config", {"machine-drain-timeout": {"minutes": 1}}),
    ("manager.config.machine-drain-timout", "10m"),
    ("manager.config.machine-drain-timeout", 600),
    ("manager.config.controllers", [1]),
    ("manager.config.max-replicas", "many"),
    ("manager.config.config", "/etc/mcm/other.yaml"),
    ("controlCluster.inCluster", "yes"),
    ("controlCluster.kubeconfigSecret", "control-kubeconfig"),
    ("targetCluster.mode", "shoot"),
    ("leaderElection.leaseDuration", 15),
    ("leaderElection.leaseDuration", "15 seconds"),
    ("podSecurity.user", 0),
    ("podDisruptionBudget.maxUnavailable", "half"),
    ("priorityClass.value", 2_000_000_000),
    ("priorityClass.preemptionPolicy", "Always"),
    ("flowControl.matchingPrecedence", 2),
    ("flowControl.matchingPrecedence", 9000),
    ("flowControl.priorityLevel", "workload-high"),
    ("flowControl.priorityLevel.name", "Workload_High"),
    ("flowControl.priorityLevel.nominalConcurrencyShares", 0),
    ("flowControl.priorityLevel.lendablePercent", 101),
    ("flowControl.priorityLevel.handSize", 9),
    ("networkPolicy.egress", {"ports": []}),
    ("metrics.serviceMonitor.interval", "1.5m"),
    ("metrics.serviceMonitor.scrapeTimeout", "10s1m"),
    ("webhook.port", 443),
    ("webhook.failurePolicy", "ignore"),
    ("webhook.url", "http://mcm.example.org/validate"),
    ("webhook.certificates.source", "vault"),
)


@pytest.mark.parametrize("path", sorted({path for path, _ in REFUSED}))
def test_a_value_that_cannot_be_meant_is_refused_and_named(helm: Helm, path: str) -> None:
    for refused, value in REFUSED:
        if refused != path:
            continue
        said = helm.fails("template", "mcm", str(CHART), values=nested(path, value))
        assert "values don't meet the specifications of the schema" in said
        assert all(part in said for part in path.split(".")), said


def test_the_config_takes_what_the_file_takes(helm: Helm, tmp_path: Path) -> None:
    """Each flag by its name, in the form that the file has it in, as helm hands it over."""
    flags = {name: flag for name, flag in FLAGS.items() if name not in _OF_THE_CHART}
    config = {name: _in_yaml(flag) for name, flag in flags.items() if flag.default is not None}
    manifests = helm.template(values={"manager": {"config": config}})
    (handed,) = (m["data"]["config.yaml"] for m in manifests if m["kind"] == "ConfigMap")
    (tmp_path / "config.yaml").write_text(handed)
    source = read_file(str(tmp_path / "config.yaml"), FLAGS)
    assert source.problems == []
    assert {name: given.value for name, given in source.given.items()} == {
        name: FLAGS[name].default for name in config
    }


def test_the_config_refuses_what_the_chart_sets_and_says_from_where(helm: Helm) -> None:
    names = _OF_THE_CHART - {CONFIG}
    values = {"manager": {"config": {name: _in_yaml(FLAGS[name]) for name in names}}}
    said = helm.fails("template", "mcm", str(CHART), values=values)
    for name in names:
        assert f"manager.config.{name}: the chart sets this flag from " in said


def _in_yaml(flag: Flag) -> object:
    value = flag.default
    if isinstance(value, tuple):
        return list(value)
    return flag.kind.as_text(value) if isinstance(value, timedelta) else value


TOGETHER: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"manager": {"config": {"namespace": "other"}}},
        "manager.config.namespace: the chart sets this flag from manager.namespace",
    ),
    ({"controlCluster": {"inCluster": False}}, "controlCluster.kubeconfigSecret.name: required"),
    ({"targetCluster": {"mode": "kubeconfig"}}, "targetCluster.kubeconfigSecret.name: required"),
    ({"leaderElection": {"enabled": False}}, "replicaCount: only 1 is possible"),
    ({"webhook": {"enabled": True, "port": 10258}}, "webhook.port: must not be"),
    ({"sharding": {"name": "a"}}, "sharding: name and selector are required together"),
    ({"metrics": {"tls": {"enabled": True}}}, "metrics.tls.secretName: required"),
    (
        {"webhook": {"enabled": True, "certificates": {"source": "secret"}}},
        "webhook.certificates.secretName: required",
    ),
    (
        {
            "controlCluster": {"inCluster": False, "kubeconfigSecret": {"name": "control"}},
            "webhook": {"enabled": True},
        },
        "webhook.url: required",
    ),
    ({"mode": "access", "access": {"target": False}}, "access: with mode=access"),
    (
        {"flowControl": {"enabled": True, "priorityLevel": {"queues": 3}}},
        "flowControl.priorityLevel.handSize: must not be more",
    ),
)


@pytest.mark.parametrize(("values", "said"), TOGETHER, ids=[said for _, said in TOGETHER])
def test_values_that_contradict_each_other_are_named(
    helm: Helm, values: dict[str, Any], said: str
) -> None:
    assert said in helm.fails("template", "mcm", str(CHART), values=values)


def test_all_contradictions_are_named_at_once(helm: Helm) -> None:
    values = {
        "controlCluster": {"inCluster": False},
        "targetCluster": {"mode": "kubeconfig"},
        "leaderElection": {"enabled": False},
    }
    said = helm.fails("template", "mcm", str(CHART), values=values)
    for problem in ("controlCluster.", "targetCluster.", "replicaCount:"):
        assert f"- {problem}" in said


def test_the_schema_knows_each_value_and_nothing_else() -> None:
    assert _paths_of_schema(SCHEMA) - {"global"} == _paths_of_values(DEFAULTS, SCHEMA)


def test_nothing_may_be_added_where_the_schema_lists_what_there_is() -> None:
    def check(schema: dict[str, Any], path: str) -> None:
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path
            for name, below in schema["properties"].items():
                check(below, f"{path}.{name}")

    check(SCHEMA, "")


_OPEN = (".issuerRef", "resources", "manager.config")
"""Values whose keys are not the chart's own."""


def _paths_of_schema(schema: dict[str, Any], path: str = "") -> set[str]:
    if "properties" not in schema or path.endswith(_OPEN):
        return {path}
    found = (_paths_of_schema(s, f"{path}.{n}".strip(".")) for n, s in schema["properties"].items())
    return set().union(*found)


def _paths_of_values(values: object, schema: dict[str, Any], path: str = "") -> set[str]:
    known = schema.get("properties")
    if not isinstance(values, dict) or known is None or path.endswith(_OPEN):
        return {path}
    return set().union(
        *(
            _paths_of_values(value, known.get(name, {}), f"{path}.{name}".strip("."))
            for name, value in values.items()
        )
    )
