from __future__ import annotations

import logging
import random

import pytest

from mcm.client.transport import Response
from mcm.sandbox.apiserver.server import ApiServer
from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    NODES,
    PODS,
    WIDGETS,
    ManualClock,
    Workbench,
    config_map,
    pod,
    widget,
)


@pytest.mark.parametrize("check", ["healthz", "livez", "readyz"])
def test_a_server_is_healthy(api: Workbench, check: str) -> None:
    answer = api.send("GET", f"/{check}")
    assert (answer.status, answer.text) == (200, b"ok")
    assert answer.headers["content-type"].startswith("text/plain")
    assert api.send("GET", f"/{check}/ping").text == b"ok"
    assert b"[+]etcd ok" in api.send("GET", f"/{check}", verbose="").text


def test_the_version_can_be_chosen() -> None:
    server = ApiServer(clock=ManualClock(), random=random.Random(1), version="v1.29.3")
    bench = Workbench()
    bench.server = server
    body = bench.get("/version")
    assert (body["major"], body["minor"], body["gitVersion"]) == ("1", "29", "v1.29.3")


def test_the_root_lists_paths(api: Workbench) -> None:
    assert "/version" in api.get("/")["paths"]


def test_discovery_and_openapi_follow_the_registry(toys: Workbench) -> None:
    kinds = {r["name"] for r in toys.get("/apis/toys.example/v1")["resources"]}
    assert {"widgets", "widgets/status", "widgets/scale"} <= kinds
    assert "toys.example" in {g["name"] for g in toys.get("/apis")["groups"]}
    assert toys.get("/api")["versions"] == ["v1"]
    assert "apis/toys.example/v1" in toys.get("/openapi/v3")["paths"]
    toys.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.toys.example")
    assert toys.send("GET", "/apis/toys.example/v1").status == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/things",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/pods/p/log/tail",
        "/api/v1/namespaces/default/pods/p/nonsense",
        "/api/v1/pods/p",
        "/api/v1//pods",
        f"{CONFIG_MAPS}/a/status",
    ],
)
def test_an_unknown_path_is_not_found(api: Workbench, path: str) -> None:
    answer = api.send("GET", path)
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["kind"] == "Status"


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize(
    "path",
    ["/apis/nothing", "/api/v2/pods", "/apis/no.such.group/v1/things", "/apis/apps/v9/replicasets"],
)
def test_a_path_in_no_served_version_is_not_even_answered_in_json(
    api: Workbench, method: str, path: str
) -> None:
    answer = api.send(method, path)
    assert (answer.status, answer.text) == (404, b"404 page not found\n")
    assert answer.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", CONFIG_MAPS),
        ("PATCH", CONFIG_MAPS),
        ("POST", f"{CONFIG_MAPS}/a"),
        ("BREW", CONFIG_MAPS),
        ("POST", f"{NODES}/n/status"),
        ("DELETE", f"{NODES}/n/status"),
        ("GET", "/api/v1/namespaces/default/finalize"),
        ("POST", "/version"),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ],
)
def test_a_method_that_makes_no_sense_is_not_allowed(
    api: Workbench, method: str, path: str
) -> None:
    answer = api.send(method, path, {})
    assert (answer.status, answer.body["reason"]) == (405, "MethodNotAllowed")


def test_names_in_paths_are_decoded(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a.b"))
    assert api.get("/api/v1/namespaces/default/configmaps/a%2Eb")["metadata"]["name"] == "a.b"


def test_namespaces_are_told_from_what_is_in_them(api: Workbench) -> None:
    assert api.get("/api/v1/namespaces/default")["kind"] == "Namespace"
    assert api.get("/api/v1/namespaces/default/status")["kind"] == "Namespace"
    assert api.get("/api/v1/namespaces/default/pods")["kind"] == "PodList"
    api.create(PODS, pod("p"))
    assert api.get(f"{PODS}/p/status")["kind"] == "Pod"


# Reviews ----------------------------------------------------------------------------------------


def test_everything_is_allowed(api: Workbench) -> None:
    path = "/apis/authorization.k8s.io/v1"
    asked = {"spec": {"resourceAttributes": {"verb": "delete", "resource": "pods"}}}
    review = api.create(f"{path}/selfsubjectaccessreviews", asked)
    assert review["status"]["allowed"] is True
    assert review["spec"] == asked["spec"]
    assert review["kind"] == "SelfSubjectAccessReview"
    rules = api.create(f"{path}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert rules["status"]["resourceRules"][0]["verbs"] == ["*"]
    whoami = api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert "system:masters" in whoami["status"]["userInfo"]["groups"]


def test_a_review_is_not_kept(api: Workbench) -> None:
    before = api.server.store.revision
    api.create(
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    )
    assert api.server.store.revision == before


# Counting ---------------------------------------------------------------------------------------


def test_requests_are_counted_by_verb_resource_and_agent(toys: Workbench) -> None:
    requests = toys.server.requests
    requests.reset()
    toys.create(WIDGETS, widget("w"), agent="mcm/0.1 (linux)")
    toys.patch(f"{WIDGETS}/w", {"spec": {"size": 2}}, agent="mcm/0.1")
    toys.patch(f"{WIDGETS}/w/status", {"status": {"phase": "x"}}, agent="mcm/0.1")
    toys.send("PUT", f"{WIDGETS}/v", widget("v"), agent="mcm/0.1")
    toys.get(f"{WIDGETS}/w", agent="mcm/0.1")
    toys.names(WIDGETS, agent="kubelet")
    toys.delete(f"{WIDGETS}/w", agent="kubelet")
    assert requests.total(agent="mcm") == 5
    assert requests.writes(agent="mcm") == 4
    assert requests.writes(agent="kubelet", resource="widgets.toys.example") == 1
    assert requests.writes() == 5
    assert requests.total(verb="patch", subresource="status") == 1
    assert requests.total(code=404) == 1
    assert {kind.verb for kind in requests.snapshot()} == {
        "create",
        "patch",
        "update",
        "get",
        "list",
        "delete",
    }


def test_metrics_are_prometheus_text(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"), agent='odd"agent/1')
    text = api.send("GET", "/metrics").text.decode()
    assert (
        'apiserver_request_total{verb="CREATE",resource="configmaps",subresource="",'
        'user_agent="odd\\"agent",code="201"} 1'
    ) in text
    assert 'apiserver_storage_objects{resource="configmaps"} 1' in text
    assert 'apiserver_longrunning_requests{verb="WATCH"} 0' in text


# Bugs -------------------------------------------------------------------------------------------


def test_a_bug_is_a_500_and_in_the_log_or_leaves_the_server(
    api: Workbench, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Response:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("mcm.sandbox.apiserver.server.answer", broken)
    with pytest.raises(ZeroDivisionError):
        api.send("GET", CONFIG_MAPS)
    api.server.settings.raise_bugs = False
    with caplog.at_level(logging.ERROR):
        answer = api.send("GET", CONFIG_MAPS)
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")
    assert "no answer for a request" in caplog.text
