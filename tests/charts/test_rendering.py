"""What the chart renders from values that people have: whole, valid, no more than is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from mcm import __version__
from mcm.cli import run
from mcm.webhook.configuration import webhook_configuration
from tests.charts.helm_binary import CHART, Helm, Manifest

VALUES = Path(__file__).parent / "values"
FILES = sorted(path.stem for path in VALUES.glob("*.yaml"))
RUNNING = [name for name in FILES if name != "access"]

_OLDEST, _NEWEST = "1.27", kubernetes_validate.latest_version()
_SINCE = {"flowcontrol.apiserver.k8s.io": "1.29"}
"""Groups that are only rendered for servers of this version and newer."""
_OF_OTHERS = {"monitoring.coreos.com", "cert-manager.io"}
"""Groups that Kubernetes has no schemas of."""


def rendered(helm: Helm, name: str, *arguments: str, **more: str) -> list[Manifest]:
    return helm.template(f"--values={VALUES / f'{name}.yaml'}", *arguments, **more)


def of(manifests: Sequence[Manifest], kind: str, name: str = "") -> Manifest:
    """Return the one of this kind, or of this kind whose name ends so."""
    found = [m for m in manifests if m["kind"] == kind and m["metadata"]["name"].endswith(name)]
    assert len(found) == 1, [(m["kind"], m["metadata"]["name"]) for m in manifests]
    return found[0]


def kinds(manifests: Sequence[Manifest]) -> set[tuple[str, str]]:
    return {(m["kind"], m["metadata"]["name"]) for m in manifests}


def container(manifests: Sequence[Manifest]) -> Manifest:
    (only,) = of(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def file_rules(*names: str) -> list[Any]:
    texts = [(CHART / "files" / "rbac" / f"{name}.yaml").read_text() for name in names]
    return [rule for text in texts for rule in yaml.safe_load(text)]


# ---- lint and schemas ---------------------------------------------------------------------------


def test_lint_has_nothing_to_say_of_any_values(helm: Helm) -> None:
    values = [f"--values={VALUES / f'{name}.yaml'}" for name in FILES]
    for each in values:
        said = helm("lint", "--strict", "--quiet", str(CHART), each)
        assert said.strip() == "", said


@pytest.mark.parametrize("name", FILES)
def test_everything_is_valid_by_the_schemas_of_kubernetes(helm: Helm, name: str) -> None:
    validated = 0
    for manifest in rendered(helm, name):
        group = manifest["apiVersion"].partition("/")[0]
        if group in _OF_OTHERS:
            continue
        for version in (_SINCE.get(group, _OLDEST), _NEWEST):
            kubernetes_validate.validate(manifest, version, strict=True)
            validated += 1
    assert validated >= 8, "the chart has become suspiciously small"


def test_the_chart_is_made_for_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert str(chart["appVersion"]) == __version__
    assert chart["kubeVersion"] == f">={_OLDEST}.0-0"


# ---- the process --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RUNNING)
def test_every_argument_is_a_flag_and_all_together_are_valid(helm: Helm, name: str) -> None:
    command, *arguments = container(rendered(helm, name))["args"]
    assert command == "run"
    with run.make_context("run", list(arguments)) as context:
        configuration = context.params["configuration"]
    assert configuration.options.validate() == []


def test_an_unknown_argument_would_be_noticed(helm: Helm) -> None:
    manifests = rendered(helm, "one-cluster", "--set", "manager.extraArgs={--no-such-flag}")
    with pytest.raises(click.UsageError, match="--no-such-flag: there is no such flag"):
        run.make_context("run", container(manifests)["args"][1:])


@pytest.mark.parametrize(
    ("name", "control", "target"),
    [
        ("one-cluster", "inClusterConfig", "inClusterConfig"),
        ("two-clusters", "inClusterConfig", "/etc/mcm/target/kubeconfig"),
        ("in-cluster-target", "/etc/mcm/control/config", "inClusterConfig"),
        ("both-elsewhere", "/etc/mcm/control/kubeconfig", "/etc/mcm/target/kubeconfig"),
        ("no-target", "inClusterConfig", "none"),
    ],
)
def test_the_process_is_led_to_its_clusters(
    helm: Helm, name: str, control: str, target: str
) -> None:
    manifests = rendered(helm, name)
    arguments = container(manifests)["args"]
    assert f"--control-kubeconfig={control}" in arguments
    assert f"--target-kubeconfig={target}" in arguments
    mounted = {mount["mountPath"] for mount in container(manifests)["volumeMounts"]}
    files = [path for path in (control, target) if path.startswith("/")]
    assert {path.rpartition("/")[0] for path in files} <= mounted


@pytest.mark.parametrize("name", RUNNING)
def test_whatever_is_mounted_is_a_volume_of_the_pod(helm: Helm, name: str) -> None:
    manifests = rendered(helm, name)
    pod = of(manifests, "Deployment")["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert {mount["name"] for mount in container(manifests)["volumeMounts"]} == set(volumes)
    made = kinds(manifests)
    for volume in volumes.values():
        if "configMap" in volume:
            assert ("ConfigMap", volume["configMap"]["name"]) in made


def test_the_token_is_mounted_only_where_the_pod_talks_to_its_own_cluster(helm: Helm) -> None:
    mounts = {
        name: of(rendered(helm, name), "Deployment")["spec"]["template"]["spec"][
            "automountServiceAccountToken"
        ]
        for name in RUNNING
    }
    assert {name for name, mounted in mounts.items() if not mounted} == {"both-elsewhere"}
    assert of(rendered(helm, "one-cluster"), "ServiceAccount")["automountServiceAccountToken"] is (
        False
    )


def test_the_grace_of_the_pod_exceeds_that_of_the_process(helm: Helm) -> None:
    pod = of(rendered(helm, "one-cluster"), "Deployment")["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= 20 + 5


def test_a_config_is_handed_over_and_a_change_of_it_replaces_the_pods(helm: Helm) -> None:
    def with_config(**config: object) -> list[Manifest]:
        values = {"manager": {"config": {key.replace("_", "-"): v for key, v in config.items()}}}
        return helm.template(values=values)

    before = with_config(machine_drain_timeout="10m")
    after = with_config(machine_drain_timeout="20m")
    assert "--config=/etc/mcm/config/config.yaml" in container(before)["args"]
    text = of(before, "ConfigMap")["data"]["config.yaml"]
    assert yaml.safe_load(text) == {"machine-drain-timeout": "10m"}
    assert _template(before) != _template(after)
    assert _template(before) == _template(with_config(machine_drain_timeout="10m"))


def _template(manifests: Sequence[Manifest]) -> Manifest:
    found = of(manifests, "Deployment")["spec"]["template"]
    assert isinstance(found, dict)
    return found


def test_without_leader_election_two_pods_never_run_at_once(helm: Helm) -> None:
    alone = {"replicaCount": 1, "leaderElection": {"enabled": False}}
    spec = of(helm.template(values=alone), "Deployment")["spec"]
    assert spec["strategy"] == {"type": "Recreate"}
    assert of(helm.template(), "Deployment")["spec"]["strategy"]["rollingUpdate"] == {
        "maxSurge": 1,
        "maxUnavailable": 0,
    }


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, f"mcm:{__version__}"),
        ({"repository": "r.example.org/x", "tag": "v2"}, "r.example.org/x:v2"),
        ({"tag": "v2", "digest": f"sha256:{'0' * 64}"}, f"mcm@sha256:{'0' * 64}"),
    ],
)
def test_the_image_is_named_by_tag_or_digest(
    helm: Helm, image: dict[str, str], reference: str
) -> None:
    assert container(helm.template(values={"image": image}))["image"] == reference


# ---- roles --------------------------------------------------------------------------------------


def test_in_one_cluster_the_roles_for_both_are_there(helm: Helm) -> None:
    manifests = rendered(helm, "one-cluster")
    role = of(manifests, "Role", "mcm")
    assert (role["metadata"]["namespace"], role["rules"]) == ("mcm", file_rules("control"))
    assert of(manifests, "ClusterRole")["rules"] == file_rules("target")
    tokens = of(manifests, "Role", "-bootstrap-tokens")
    assert tokens["metadata"]["namespace"] == "kube-system"
    assert tokens["rules"] == file_rules("target-bootstrap-tokens")
    _each_role_is_bound_to(manifests, "ServiceAccount", "mcm")


def test_in_two_clusters_each_has_its_own_roles(helm: Helm) -> None:
    manifests = rendered(helm, "two-clusters")
    role = of(manifests, "Role")
    assert role["metadata"]["namespace"] == "shoot--team--prod"
    assert role["rules"] == file_rules("control")
    assert not [m for m in manifests if m["kind"].startswith("ClusterRole")]
    _each_role_is_bound_to(manifests, "ServiceAccount", "mcm")
    other = rendered(helm, "in-cluster-target")
    assert of(other, "ClusterRole")["rules"] == file_rules("target")
    assert of(other, "Role")["metadata"]["namespace"] == "kube-system"


@pytest.mark.parametrize("name", ["both-elsewhere", "no-target"])
def test_no_role_is_made_for_a_cluster_that_is_elsewhere_or_nowhere(helm: Helm, name: str) -> None:
    made = {kind for kind, _ in kinds(rendered(helm, name))}
    assert not made & {"ClusterRole", "ClusterRoleBinding"}
    assert ("Role" in made) == (name == "no-target")


def test_simulated_machines_need_more(helm: Helm) -> None:
    manifests = helm.template()
    assert of(manifests, "Role", "mcm")["rules"] == file_rules(
        "control", "provider-simulated", "simulated-cloud-control"
    )
    assert of(manifests, "ClusterRole")["rules"] == file_rules("target", "simulated-cloud-target")
    kind = of(manifests, "CustomResourceDefinition")
    assert kind["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    elsewhere = helm.template(values={"simulatedCloud": {"enabled": False}})
    assert of(elsewhere, "Role", "mcm")["rules"] == file_rules("control", "provider-simulated")
    assert "--simulate-cloud" not in container(elsewhere)["args"]


def test_a_shard_may_hold_leases_of_its_name(helm: Helm) -> None:
    manifests = rendered(helm, "everything")
    assert {"--shard-name=blue", "--shard-selector=shard=blue"} <= set(container(manifests)["args"])
    rules = of(manifests, "Role", "mcm")["rules"]
    (sharding,) = file_rules("sharding")
    assert sharding in rules
    assert sharding not in of(helm.template(), "Role", "mcm")["rules"]


def test_rules_of_a_provider_come_on_top(helm: Helm) -> None:
    manifests = rendered(helm, "everything")
    assert of(manifests, "Role", "mcm")["rules"][-1]["resources"] == ["configmaps"]
    assert of(manifests, "ClusterRole", "-target")["rules"][-1]["resources"] == ["services"]


def test_roles_alone_are_for_whom_the_values_name(helm: Helm) -> None:
    manifests = rendered(helm, "access", "--set", "manager.provider=directory")
    assert {m["kind"] for m in manifests} == {
        "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
    }  # fmt: skip
    _each_role_is_bound_to(manifests, "User", "machine-controller-manager")
    own = rendered(helm, "access", "--set", "access.subjects=null")
    _each_role_is_bound_to(own, "ServiceAccount", "mcm")


def test_no_rule_has_a_wildcard(helm: Helm) -> None:
    for name in FILES:
        for role in rendered(helm, name):
            for rule in role.get("rules") or () if role["kind"].endswith("Role") else ():
                assert "*" not in [word for words in rule.values() for word in words]


def _each_role_is_bound_to(manifests: Sequence[Manifest], kind: str, name: str) -> None:
    def names(of_kind: str) -> set[tuple[str, str, str]]:
        return {
            (m["kind"].removesuffix("Binding"), m["metadata"]["name"], _home(m))
            for m in manifests
            if m["kind"] in (of_kind, f"Cluster{of_kind}")
        }

    assert names("Role") == names("RoleBinding")
    for binding in (m for m in manifests if m["kind"].endswith("Binding")):
        assert binding["roleRef"]["name"] == binding["metadata"]["name"]
        assert binding["roleRef"]["kind"] == binding["kind"].removesuffix("Binding")
        assert [(s["kind"], s["name"]) for s in binding["subjects"]] == [(kind, name)]


def _home(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("namespace", ""))


# ---- what is around the process -----------------------------------------------------------------


def test_every_selector_finds_the_pods_and_every_port_is_one_of_theirs(helm: Helm) -> None:
    manifests = rendered(helm, "everything")
    labels = _template(manifests)["metadata"]["labels"].items()
    ports = {port["name"] for port in container(manifests)["ports"]}
    selectors = [
        of(manifests, "Deployment")["spec"]["selector"]["matchLabels"],
        of(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        of(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
    ]
    for suffix in ("-metrics", "-webhook"):
        service = of(manifests, "Service", suffix)["spec"]
        selectors.append(service["selector"])
        assert {port["targetPort"] for port in service["ports"]} <= ports
    for selector in selectors:
        assert selector.items() <= labels
    test = of(manifests, "Pod")["metadata"]["labels"].items()
    assert not selectors[0].items() <= test, "the pods of the tests are no replicas"
    monitor = of(manifests, "ServiceMonitor")["spec"]
    service = of(manifests, "Service", "-metrics")
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    served = {port["name"] for port in service["spec"]["ports"]}
    assert {endpoint["port"] for endpoint in monitor["endpoints"]} <= served


def test_what_may_be_reached_is_narrowed_on_demand(helm: Helm) -> None:
    open_, narrow = (
        of(manifests, "NetworkPolicy")["spec"]
        for manifests in (helm.template(), rendered(helm, "everything"))
    )
    assert open_["policyTypes"] == ["Ingress"] and "from" not in open_["ingress"][0]
    assert narrow["policyTypes"] == ["Ingress", "Egress"]
    assert {port["port"] for rule in narrow["egress"] for port in rule["ports"]} == {53, 443}
    asking, testing = narrow["ingress"][0]["from"]
    assert "namespaceSelector" in asking
    test = of(rendered(helm, "everything"), "Pod")["metadata"]["labels"]
    assert testing["podSelector"]["matchLabels"].items() <= test.items()


def test_alerts_and_dashboards_are_those_of_the_files(helm: Helm) -> None:
    manifests = rendered(helm, "everything")
    files = sorted((CHART / "files" / "alerts").glob("*.yaml"))
    groups = [group for path in files for group in yaml.safe_load(path.read_text())["groups"]]
    rules = [m for m in manifests if m["kind"] == "PrometheusRule"]
    assert [m["spec"]["groups"] for m in rules] == ([groups] if groups else [])
    boards = {p.name: p.read_text() for p in (CHART / "files" / "dashboards").glob("*.json")}
    maps = [m for m in manifests if m["metadata"].get("labels", {}).get("grafana_dashboard")]
    assert [m["data"] for m in maps] == ([boards] if boards else [])


def test_guarded_metrics_have_a_port_of_their_own_and_readers(helm: Helm) -> None:
    manifests = rendered(helm, "everything")
    (endpoint,) = of(manifests, "ServiceMonitor")["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["scheme"]) == ("metrics", "https")
    assert endpoint["tlsConfig"]["serverName"] == "mcm-metrics.mcm.svc"
    assert endpoint["bearerTokenFile"].endswith("/token")
    assert "--metrics-authorization=true" in container(manifests)["args"]
    reviews = of(manifests, "ClusterRole", "-metrics-reviews")["rules"]
    assert reviews == file_rules("metrics-authorization")
    readers = of(manifests, "ClusterRoleBinding", "-metrics-reader")["subjects"]
    assert [reader["name"] for reader in readers] == ["prometheus"]
    assert of(manifests, "ClusterRole", "-metrics-reader")["rules"] == [
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    ]


# ---- the webhook --------------------------------------------------------------------------------


def test_the_webhook_is_asked_as_the_project_says_for_its_namespace_alone(helm: Helm) -> None:
    configuration = of(rendered(helm, "everything"), "ValidatingWebhookConfiguration")
    (webhook,) = configuration["webhooks"]
    assert webhook["clientConfig"].pop("caBundle")
    own = {"matchLabels": {"kubernetes.io/metadata.name": "mcm"}}
    assert webhook.pop("namespaceSelector") == own
    expected = webhook_configuration(service="mcm-webhook", namespace="mcm", fail=True)
    assert [webhook] == expected["webhooks"]


@pytest.mark.parametrize("source", ["self-signed", "cert-manager", "secret"])
def test_the_webhook_has_its_certificate_from(helm: Helm, source: str) -> None:
    certificates = {"source": source, "secretName": "given" if source == "secret" else ""}
    manifests = helm.template(values={"webhook": {"enabled": True, "certificates": certificates}})
    volumes = _template(manifests)["spec"]["volumes"]
    (secret,) = (v["secret"]["secretName"] for v in volumes if v["name"] == "webhook-certificate")
    made = kinds(manifests)
    assert secret == ("given" if source == "secret" else "mcm-webhook")
    assert (("Secret", secret) in made) == (source == "self-signed")
    assert (("Certificate", secret) in made) == (source == "cert-manager")
    configuration = of(manifests, "ValidatingWebhookConfiguration")
    injected = (
        configuration["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from")
    )
    assert injected == ("mcm/mcm-webhook" if source == "cert-manager" else None)
    if source == "cert-manager":
        certificate = of(manifests, "Certificate")["spec"]
        assert certificate["secretName"] == secret
        assert ("Issuer", certificate["issuerRef"]["name"]) in made
        assert "mcm-webhook.mcm.svc" in certificate["dnsNames"]
