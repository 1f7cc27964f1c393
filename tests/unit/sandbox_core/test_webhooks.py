"""Validating webhooks are asked before a change is made, as a real server asks them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from mcm.client.transport import Request, Response
from mcm.sandbox.apiserver.admission.review import NoAnswer
from mcm.sandbox.apiserver.admission.webhooks import Webhook
from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    JSON,
    MERGE,
    Document,
    Workbench,
)

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
EVERYTHING = {
    "apiGroups": ["*"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["configmaps"],
}


class Judge:
    """A webhook as the server sees it: remembers what it was asked, answers as it is told."""

    def __init__(self, answer: Callable[[Document], Document] | None = None) -> None:
        self.asked: list[Document] = []
        self.answer = answer or (lambda _: {"allowed": True})

    async def __call__(self, url: str, webhook: Webhook, body: bytes) -> bytes:
        request = orjson.loads(body)["request"]
        self.asked.append({**request, "url": url})
        return orjson.dumps({"response": {"uid": request["uid"], **self.answer(request)}})


def _configure(api: Workbench, judge: object, **webhook: Any) -> None:
    api.server.asking.caller = judge  # type: ignore[assignment]
    found = {
        "name": "w.example.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": "https://127.0.0.1:1/judge"},
        "rules": [EVERYTHING],
        **webhook,
    }
    api.create(CONFIGURATIONS, {"metadata": {"name": "w"}, "webhooks": [found]})


def _send(
    api: Workbench, method: str, path: str, body: object = None, media: str = JSON
) -> Response:
    raw = orjson.dumps(body) if body is not None else b""
    request = Request(method, path, headers={"content-type": media}, body=raw)
    answer = asyncio.run(api.server.handle(request))
    assert isinstance(answer, Response)
    return answer


def _said(answer: Response) -> tuple[int, str]:
    return answer.status, orjson.loads(answer.body)["message"]


def _map(name: str = "m", **data: str) -> Document:
    return {"metadata": {"name": name}, "data": data}


def test_a_webhook_sees_each_change_before_and_after(api: Workbench) -> None:
    judge = Judge()
    _configure(api, judge)
    _send(api, "POST", CONFIG_MAPS, _map(a="1"))
    _send(api, "PATCH", f"{CONFIG_MAPS}/m", {"data": {"a": "2"}}, MERGE)
    _send(api, "PUT", f"{CONFIG_MAPS}/m", _map(a="3"))
    _send(api, "DELETE", f"{CONFIG_MAPS}/m")
    data = [
        (a["operation"], *((a[s] or {}).get("data", {}).get("a") for s in ("oldObject", "object")))
        for a in judge.asked
    ]
    assert data == [
        ("CREATE", None, "1"),
        ("UPDATE", "1", "2"),
        ("UPDATE", "2", "3"),
        ("DELETE", "3", None),
    ]
    first = judge.asked[0]
    assert (first["name"], first["namespace"], first["dryRun"]) == ("m", "default", False)
    assert first["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert first["userInfo"]["username"] == "sandbox-admin"
    assert first["url"] == "https://127.0.0.1:1/judge?timeout=10s"
    assert api.server.objects("", "configmaps") == []


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"code": 403, "message": "no"}, (403, "denied the request: no")),
        ({"reason": "Invalid"}, (400, "denied the request: Invalid")),
        ({}, (400, "denied the request without explanation")),
        ({"code": 200, "message": "no"}, (400, "denied the request: no")),
    ],
)
def test_what_a_webhook_denies_is_not_stored(
    api: Workbench, status: Document, said: tuple[int, str]
) -> None:
    _configure(api, Judge(lambda _: {"allowed": False, "status": status}))
    code, words = said
    refused = _send(api, "POST", CONFIG_MAPS, _map())
    assert _said(refused) == (code, f'admission webhook "w.example.org" {words}')
    assert api.server.objects("", "configmaps") == []
    assert api.server.requests.total(verb="create", resource="configmaps", code=code) == 1


def test_a_webhook_warns(api: Workbench) -> None:
    _configure(api, Judge(lambda _: {"allowed": True, "warnings": ["mind the gap"]}))
    made = _send(api, "POST", CONFIG_MAPS, _map())
    assert (made.status, made.headers["warning"]) == (201, '299 - "mind the gap"')


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
def test_the_failure_policy_says_what_silence_means(
    api: Workbench, policy: str, status: int
) -> None:
    async def silent(url: str, webhook: Webhook, body: bytes) -> bytes:
        raise NoAnswer(f'Post "{url}": nobody is there')

    _configure(api, silent, failurePolicy=policy)
    answer = _send(api, "POST", CONFIG_MAPS, _map())
    assert answer.status == status
    if status == 500:
        assert _said(answer)[1] == (
            'Internal error occurred: failed calling webhook "w.example.org": failed to call '
            'webhook: Post "https://127.0.0.1:1/judge?timeout=10s": nobody is there'
        )


def test_an_answer_to_another_question_is_none(api: Workbench) -> None:
    _configure(api, Judge(lambda _: {"allowed": True, "uid": "another"}))
    status, said = _said(_send(api, "POST", CONFIG_MAPS, _map()))
    assert status == 500
    assert "expected response.uid=" in said


def test_behind_a_service_here_nobody_answers(api: Workbench) -> None:
    service = {"namespace": "default", "name": "s", "path": "/judge"}
    _configure(api, Judge(), clientConfig={"service": service})
    assert _said(_send(api, "POST", CONFIG_MAPS, _map()))[1].endswith(
        'Post "https://s.default.svc:443/judge?timeout=10s": service "s" not found'
    )


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ({}, True),
        ({"rules": [{**EVERYTHING, "operations": ["UPDATE", "DELETE"]}]}, False),
        ({"rules": [{**EVERYTHING, "apiGroups": ["apps"]}]}, False),
        ({"rules": [{**EVERYTHING, "scope": "Cluster"}]}, False),
        ({"rules": [{**EVERYTHING, "resources": ["*"]}]}, True),
        ({"rules": [{**EVERYTHING, "resources": ["configmaps/status"]}]}, False),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, False),
        (
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}},
            True,
        ),
    ],
)
def test_rules_and_selectors_say_about_what(api: Workbench, change: Document, asked: bool) -> None:
    judge = Judge()
    _configure(api, judge, **change)
    assert _send(api, "POST", CONFIG_MAPS, _map()).status == 201
    assert bool(judge.asked) is asked


def test_what_fails_anyway_is_asked_about_nobody(api: Workbench) -> None:
    judge = Judge()
    _configure(api, judge)
    assert _send(api, "POST", CONFIG_MAPS, _map("No Name")).status == 422
    assert _send(api, "DELETE", f"{CONFIG_MAPS}/none").status == 404
    assert judge.asked == []


def test_a_scale_is_shown_as_one(api: Workbench) -> None:
    judge = Judge()
    rule = {**EVERYTHING, "resources": ["deployments/scale"]}
    _configure(api, judge, rules=[rule])
    api.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 2}})
    scaled = {"spec": {"replicas": 5}}
    assert _send(api, "PATCH", f"{DEPLOYMENTS}/d/scale", scaled, MERGE).status == 200
    (asked,) = judge.asked
    assert asked["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (asked["resource"]["resource"], asked["subResource"]) == ("deployments", "scale")
    assert asked["oldObject"]["spec"] == {"replicas": 2}
    assert asked["object"]["spec"] == {"replicas": 5}


def test_configurations_of_webhooks_pass_none(api: Workbench) -> None:
    judge = Judge(lambda _: {"allowed": False})
    everything = {**EVERYTHING, "resources": ["*/*", "*"]}
    _configure(api, judge, rules=[everything])
    assert _send(api, "DELETE", f"{CONFIGURATIONS}/w").status == 200
    assert _send(api, "POST", CONFIG_MAPS, _map()).status == 201
    assert judge.asked == []
