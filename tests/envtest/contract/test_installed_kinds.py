"""What a chart installs beside its workloads: services, policies, priorities, webhooks."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from tests.envtest.bench import STRATEGIC, Bench, Document
from tests.envtest.contract.objects import pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
POLICIES = "networking.k8s.io/v1"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

METRICS = {"name": "metrics", "port": 10258}


def _service(name: str = "s", **spec: Any) -> Document:
    return {"metadata": {"name": name}, "spec": {"ports": [METRICS], **spec}}


async def test_a_service_gets_an_address_and_keeps_it(api: Bench) -> None:
    path = api.path("services")
    sent = _service(selector={"app": "x"})
    spec = (await api.create(path, sent))["spec"]
    ipaddress.IPv4Address(spec["clusterIP"])
    assert spec == {
        "clusterIP": spec["clusterIP"],
        "clusterIPs": [spec["clusterIP"]],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{**METRICS, "protocol": "TCP", "targetPort": 10258}],
        "selector": {"app": "x"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    assert (await api.put(f"{path}/s", sent))["spec"] == spec
    second = (await api.create(path, _service("t")))["spec"]
    assert second["clusterIP"] != spec["clusterIP"]
    taken = await api.send("POST", path, _service("u", clusterIP=spec["clusterIP"]))
    assert (taken.status, taken.causes) == (422, [("FieldValueInvalid", "spec.clusterIPs")])
    assert "provided IP is already allocated" in taken.body["message"]
    other = {"spec": {"clusterIP": second["clusterIP"], "clusterIPs": [second["clusterIP"]]}}
    moved = await api.send("PATCH", f"{path}/s", other, media="application/merge-patch+json")
    assert (moved.status, moved.causes) == (422, [("FieldValueInvalid", "spec.clusterIPs[0]")])
    assert "may not change once set" in moved.body["message"]


async def test_a_service_without_an_address_may_be_without_ports(api: Bench) -> None:
    path = api.path("services")
    spec = (await api.create(path, _service(clusterIP="None", ports=[])))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"], spec["type"]) == ("None", ["None"], "ClusterIP")
    assert "ports" not in spec
    outside = {"type": "ExternalName", "externalName": "there.example"}
    assert "clusterIP" not in (await api.create(path, _service("t", **outside)))["spec"]


async def test_a_node_port_is_given_and_kept(api: Bench) -> None:
    path = api.path("services")
    spec = (await api.create(path, _service(type="NodePort")))["spec"]
    port = spec["ports"][0]["nodePort"]
    assert 30000 <= port <= 32767
    assert spec["externalTrafficPolicy"] == "Cluster"
    again = (await api.put(f"{path}/s", _service(type="NodePort")))["spec"]
    assert again["ports"][0]["nodePort"] == port
    back = (await api.put(f"{path}/s", _service()))["spec"]
    assert "nodePort" not in back["ports"][0]
    assert "externalTrafficPolicy" not in back


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"ports": []}, [("FieldValueRequired", "spec.ports")]),
        ({"ports": [{"port": 0}]}, [("FieldValueInvalid", "spec.ports[0].port")]),
        ({"type": "Tunnel"}, [("FieldValueNotSupported", "spec.type")]),
        (
            {"ports": [{"port": 1}, {"port": 2, "name": "b"}]},
            [("FieldValueRequired", "spec.ports[0].name")],
        ),
        (
            {"ports": [METRICS, {**METRICS, "port": 1}]},
            [("FieldValueDuplicate", "spec.ports[1].name")],
        ),
        ({"type": "ExternalName"}, [("FieldValueRequired", "spec.externalName")]),
        ({"clusterIP": "nowhere"}, [("FieldValueInvalid", "spec.clusterIPs[0]")]),
    ],
)
async def test_a_service_that_leads_nowhere_is_refused(
    api: Bench, spec: Document, causes: list[tuple[str, str]]
) -> None:
    answer = await api.send("POST", api.path("services"), _service(**spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(causes) <= set(answer.causes)


async def test_ports_of_a_service_merge_by_number(api: Bench) -> None:
    path = api.path("services")
    await api.create(path, _service(ports=[METRICS, {"name": "a", "port": 1}]))
    patch = {
        "spec": {
            "$setElementOrder/ports": [{"port": 10258}, {"port": 2}],
            "ports": [
                {"port": 10258, "targetPort": "metrics"},
                {"port": 2, "name": "b"},
                {"port": 1, "$patch": "delete"},
            ],
        }
    }
    spec = (await api.patch(f"{path}/s", patch, media=STRATEGIC))["spec"]
    assert [(p["port"], p["name"], p["targetPort"]) for p in spec["ports"]] == [
        (10258, "metrics", "metrics"),
        (2, "b", 2),
    ]


# Network policies -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "types"),
    [
        ({}, ["Ingress"]),
        ({"egress": [{"to": []}]}, ["Ingress", "Egress"]),
        ({"policyTypes": ["Egress"]}, ["Egress"]),
    ],
)
async def test_a_policy_says_its_directions(api: Bench, sent: Document, types: list[str]) -> None:
    path = api.path("networkpolicies", group=POLICIES)
    made = await api.create(path, {"metadata": {"name": "p"}, "spec": {"podSelector": {}, **sent}})
    assert made["spec"]["policyTypes"] == types
    assert made["spec"]["podSelector"] == {}
    assert made["metadata"]["generation"] == 1


async def test_a_policys_ports_are_tcp_and_its_line_shows_whom_it_is_for(api: Bench) -> None:
    path = api.path("networkpolicies", group=POLICIES)
    ports = [{"port": 10258}, {"port": "dns", "protocol": "UDP"}]
    selector = {"matchLabels": {"b": "2", "a": "1"}}
    spec = {"podSelector": selector, "ingress": [{"ports": ports}]}
    made = await api.create(path, {"metadata": {"name": "p"}, "spec": spec})
    found = made["spec"]["ingress"][0]["ports"]
    assert [p["protocol"] for p in found] == ["TCP", "UDP"]
    table = await api.get(path, accept=TABLE)
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Pod-Selector", "Age"]
    assert table["rows"][0]["cells"][:2] == ["p", "a=1,b=2"]


# Priorities -------------------------------------------------------------------------------------


async def test_a_pod_has_the_priority_of_its_class(api: Bench) -> None:
    name = f"high-{api.namespace}"
    made = await api.create(PRIORITIES, {"metadata": {"name": name}, "value": 7})
    assert made["preemptionPolicy"] == "PreemptLowerPriority"
    spec = (await api.create(api.pods(), pod("p", priorityClassName=name)))["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (7, "PreemptLowerPriority")
    unknown = await api.send("POST", api.pods(), pod("q", priorityClassName="none-such"))
    assert (unknown.status, unknown.reason) == (403, "Forbidden")
    assert "no PriorityClass with name none-such was found" in unknown.body["message"]
    change = {"value": 8}
    answer = await api.send(
        "PATCH", f"{PRIORITIES}/{name}", change, media="application/merge-patch+json"
    )
    assert (answer.status, answer.causes) == (422, [("FieldValueForbidden", "value")])


async def test_the_systems_priorities_are_there_and_nobody_elses(api: Bench) -> None:
    found = {c["metadata"]["name"]: c["value"] for c in (await api.get(PRIORITIES))["items"]}
    assert found["system-cluster-critical"] == 2_000_000_000
    assert found["system-node-critical"] == 2_000_001_000
    for name, value, field in (
        ("system-own", 1, "metadata.name"),
        (f"too-high-{api.namespace}", 1_000_000_001, "value"),
    ):
        answer = await api.send("POST", PRIORITIES, {"metadata": {"name": name}, "value": value})
        assert (answer.status, answer.causes) == (422, [("FieldValueForbidden", field)])


# Webhooks ---------------------------------------------------------------------------------------


async def test_a_webhook_is_told_by_its_configuration(api: Bench) -> None:
    service = {"namespace": "nowhere", "name": "s", "path": "/validate"}
    webhook = {
        "name": "machines.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": service},
        # Of a kind that nobody here has: nobody is held up.
        "rules": [
            {
                "apiGroups": ["never.heard.of"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["things"],
            }
        ],
    }
    name = f"webhook-{api.namespace}"
    body = {"metadata": {"name": name}, "webhooks": [webhook]}
    made = await api.create(WEBHOOKS, body)
    found = made["webhooks"][0]
    assert (found["failurePolicy"], found["matchPolicy"]) == ("Fail", "Equivalent")
    assert (found["timeoutSeconds"], found["rules"][0]["scope"]) == (10, "*")
    assert (found["namespaceSelector"], found["objectSelector"]) == ({}, {})
    assert found["clientConfig"]["service"] == {**service, "port": 443}
    assert made["metadata"]["generation"] == 1
    table = await api.get(WEBHOOKS, accept=TABLE, fieldSelector=f"metadata.name={name}")
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Webhooks", "Age"]
    assert table["rows"][0]["cells"][:2] == [name, 1]
    await api.delete(f"{WEBHOOKS}/{name}")
    for fault, field in (
        ({"name": "short"}, "webhooks[0].name"),
        ({"sideEffects": None}, "webhooks[0].sideEffects"),
        ({"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
        ({"clientConfig": {}}, "webhooks[0].clientConfig"),
    ):
        bad = {"metadata": {"name": name}, "webhooks": [{**webhook, **fault}]}
        answer = await api.send("POST", WEBHOOKS, bad)
        assert answer.status == 422
        assert field in {found for _, found in answer.causes}


# Tables -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plural", "columns"),
    [
        ("roles", ["Name", "Created At"]),
        ("rolebindings", ["Name", "Role", "Age", "Users", "Groups", "ServiceAccounts"]),
    ],
)
async def test_roles_are_shown_as_kubectl_knows_them(
    api: Bench, plural: str, columns: list[str]
) -> None:
    table = await api.get(api.path(plural, group="rbac.authorization.k8s.io/v1"), accept=TABLE)
    assert [c["name"] for c in table["columnDefinitions"]] == columns
