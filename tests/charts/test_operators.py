"""What the chart renders for other operators has their form, and the rules are Prometheus's."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.charts.helm_binary import Helm, Manifest
from tests.charts.operators import KINDS, validate
from tests.charts.test_rendering import FILES, of, rendered
from tests.prometheus.binaries import BinariesMissing, locate

_GUARDED = {"enabled": True, "secretName": "certificate"}
_MONITOR = {
    "enabled": True,
    "interval": "1m30s",
    "scrapeTimeout": "500ms",
    "relabelings": [{"sourceLabels": ["__meta_kubernetes_pod_name"], "targetLabel": "pod"}],
    "metricRelabelings": [{"action": "labeldrop", "regex": "endpoint"}],
}
VALUES: tuple[dict[str, object], ...] = (
    {"metrics": {"serviceMonitor": _MONITOR}},
    {"metrics": {"serviceMonitor": _MONITOR, "tls": _GUARDED}},
    {"metrics": {"serviceMonitor": _MONITOR, "tls": {**_GUARDED, "serverName": "mcm"}}},
    {"metrics": {"serviceMonitor": _MONITOR, "authorization": {"enabled": True}}},
    {"webhook": {"enabled": True, "certificates": {"source": "cert-manager"}}},
    {
        "webhook": {
            "enabled": True,
            "certificates": {
                "source": "cert-manager",
                "issuerRef": {"name": "ours", "kind": "ClusterIssuer", "group": "cert-manager.io"},
            },
        }
    },
)


def _of_operators(manifests: Sequence[Manifest]) -> list[Manifest]:
    return [m for m in manifests if m["apiVersion"].startswith(("monitoring.", "cert-manager."))]


def test_each_has_the_form_that_its_operator_takes(helm: Helm) -> None:
    sets = [rendered(helm, name) for name in FILES] + [helm.template(values=v) for v in VALUES]
    found = [manifest for manifests in sets for manifest in _of_operators(manifests)]
    for manifest in found:
        read = validate(manifest)
        again = msgspec.to_builtins(read)
        assert validate(again) == read
    assert {manifest["kind"] for manifest in found} == set(KINDS)


def test_a_field_that_no_operator_knows_would_be_noticed(helm: Helm) -> None:
    monitor = of(rendered(helm, "everything"), "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    for name, value in (("tls", {}), ("interval", "1.5m"), ("scheme", "HTTPS"), ("path", 1)):
        spec = {**monitor["spec"], "endpoints": [{**endpoint, name: value}]}
        with pytest.raises(msgspec.ValidationError, match=r"at `\$.spec.endpoints\[.+\]"):
            validate({**monitor, "spec": spec})


def test_promtool_takes_the_groups_of_the_rendered_rule(helm: Helm, tmp_path: Path) -> None:
    """The operator hands ``spec`` to Prometheus as a file of rules, as it is."""
    try:
        promtool = locate() / "promtool"
    except BinariesMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    spec = of(rendered(helm, "everything"), "PrometheusRule")["spec"]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(spec))
    done = subprocess.run(
        [promtool, "check", "rules", "--lint=all", "--lint-fatal", path],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    count = sum(len(group["rules"]) for group in spec["groups"])
    assert (done.returncode, f"{count} rules found" in done.stdout) == (0, True), done
