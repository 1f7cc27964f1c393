"""Who may do what, and the words of a refusal: the same on both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import orjson
import pytest

from mcm.client.connection import StaticToken
from mcm.client.transport import Request
from tests.envtest.bench import Bench, Document
from tests.envtest.contract.objects import config_map
from tests.envtest.control_plane import STRANGER

RBAC = "rbac.authorization.k8s.io/v1"
RBAC_GROUP = "rbac.authorization.k8s.io"
AUTHENTICATION = "/apis/authentication.k8s.io/v1"
AUTHORIZATION = "/apis/authorization.k8s.io/v1"


@asynccontextmanager
async def _as(api: Bench, user: str, *, token: str = "") -> AsyncIterator[Bench]:
    spec = api.peer.user(user)
    if token:
        spec = replace(spec, credentials=StaticToken(token))
    bench = Bench(replace(api.peer, spec=spec), api.namespace)
    try:
        yield bench
    finally:
        await bench.aclose()


@pytest.fixture
async def stranger(api: Bench) -> AsyncIterator[Bench]:
    async with _as(api, STRANGER) as bench:
        yield bench


def _role(*rules: Document, kind: str = "Role", name: str = "r") -> Document:
    return {"apiVersion": RBAC, "kind": kind, "metadata": {"name": name}, "rules": list(rules)}


def _rule(resources: list[str], verbs: list[str], *names: str, group: str = "") -> Document:
    rule: Document = {"apiGroups": [group], "resources": resources, "verbs": verbs}
    return {**rule, "resourceNames": list(names)} if names else rule


def _binding(role: str, *subjects: Document, kind: str = "Role", name: str = "b") -> Document:
    return {
        "apiVersion": RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"kind": kind, "name": role, "apiGroup": RBAC_GROUP},
        "subjects": list(subjects),
    }


async def _grant(api: Bench, *rules: Document) -> None:
    """Give the stranger rights in the namespace, and wait until they count: a real server looks
    them up in a cache."""
    await api.create(api.path("roles", group=RBAC), _role(*rules))
    await api.create(
        api.path("rolebindings", group=RBAC), _binding("r", {"kind": "User", "name": STRANGER})
    )
    rule = rules[0]
    asked = {
        "resource": rule["resources"][0],
        "verb": rule["verbs"][0],
        "namespace": api.namespace,
        "name": rule.get("resourceNames", [""])[0],
    }
    for _ in range(200):
        if (await _review(api, resourceAttributes=asked, user=STRANGER))["allowed"]:
            return
    raise AssertionError("the rights do not come")


async def _review(api: Bench, **spec: Any) -> Document:
    status: Document = (await api.create(f"{AUTHORIZATION}/subjectaccessreviews", {"spec": spec}))[
        "status"
    ]
    return status


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        (
            "GET",
            "/api/v1/namespaces/{ns}/configmaps/x",
            (
                'configmaps "x" is forbidden: User "stranger" cannot get resource "configmaps" '
                'in API group "" in the namespace "{ns}"'
            ),
        ),
        (
            "GET",
            "/apis/machine.sapcloud.io/v1alpha1/machines",
            (
                'machines.machine.sapcloud.io is forbidden: User "stranger" cannot list resource '
                '"machines" in API group "machine.sapcloud.io" at the cluster scope'
            ),
        ),
        (
            "DELETE",
            "/api/v1/namespaces/{ns}/pods",
            (
                'pods is forbidden: User "stranger" cannot deletecollection resource "pods" '
                'in API group "" in the namespace "{ns}"'
            ),
        ),
        (
            "PATCH",
            "/api/v1/nodes/n/status",
            (
                'nodes "n" is forbidden: User "stranger" cannot patch resource "nodes/status" '
                'in API group "" at the cluster scope'
            ),
        ),
        (
            "GET",
            "/api/v1/namespaces/{ns}",
            (
                'namespaces "{ns}" is forbidden: User "stranger" cannot get resource "namespaces" '
                'in API group "" in the namespace "{ns}"'
            ),
        ),
        ("GET", "/metrics", 'forbidden: User "stranger" cannot get path "/metrics"'),
        (
            "GET",
            "/apis/never.heard.of/v1/things",
            (
                'things.never.heard.of is forbidden: User "stranger" cannot list resource "things" '
                'in API group "never.heard.of" at the cluster scope'
            ),
        ),
    ],
)
async def test_who_may_not_is_told_what(
    api: Bench, stranger: Bench, method: str, path: str, what: str
) -> None:
    answer = await stranger.send(method, path.format(ns=api.namespace))
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.body["message"] == what.format(ns=api.namespace)


async def test_a_role_that_is_missing_is_named_in_the_refusal(api: Bench, stranger: Bench) -> None:
    subject = {"kind": "User", "name": STRANGER}
    await api.create(api.path("rolebindings", group=RBAC), _binding("nobody-made-it", subject))
    answer = await stranger.send("GET", api.config_maps("x"))
    for _ in range(200):
        if "nobody-made-it" in answer.body["message"]:
            break
        answer = await stranger.send("GET", api.config_maps("x"))
    assert answer.body["message"].endswith(
        f'in the namespace "{api.namespace}": RBAC: role.{RBAC_GROUP} "nobody-made-it" not found'
    )


async def test_rules_name_objects_subresources_and_verbs(api: Bench, stranger: Bench) -> None:
    await api.create(api.config_maps(), config_map("mine", a="1"))
    await api.create(api.config_maps(), config_map("other"))
    await _grant(
        api, _rule(["configmaps"], ["get", "list", "patch"], "mine"), _rule(["*/status"], ["get"])
    )
    assert (await stranger.get(api.config_maps("mine")))["data"] == {"a": "1"}
    await stranger.patch(api.config_maps("mine"), {"data": {"a": "2"}})
    assert await stranger.names(api.config_maps(), fieldSelector="metadata.name=mine") == ["mine"]
    for method, path in (
        ("GET", api.config_maps("other")),
        ("GET", api.config_maps()),
        ("DELETE", api.config_maps("mine")),
        ("GET", api.pods("p")),
    ):
        assert (await stranger.send(method, path)).status == 403, (method, path)
    assert (await stranger.send("GET", f"{api.pods('p')}/status")).status == 404


# What cannot be kept ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plural", "obj", "causes"),
    [
        ("roles", _role({"verbs": []}), {"rules[0].verbs", "rules[0].apiGroups"}),
        (
            "roles",
            _role({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
            {"rules[0].nonResourceURLs"},
        ),
        ("rolebindings", _binding("r", {"kind": "Robot", "name": "x"}), {"subjects[0].kind"}),
        ("rolebindings", _binding("r", kind="Thing"), {"roleRef.kind"}),
        ("rolebindings", _binding(""), {"roleRef.name"}),
    ],
)
async def test_what_gives_nothing_is_refused(
    api: Bench, plural: str, obj: Document, causes: set[str]
) -> None:
    answer = await api.send("POST", api.path(plural, group=RBAC), obj)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert causes <= {field for _, field in answer.causes}


async def test_a_binding_keeps_its_role_and_learns_its_groups(api: Bench) -> None:
    sent = _binding("r", {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s"})
    del sent["roleRef"]["apiGroup"]
    made = await api.create(api.path("rolebindings", group=RBAC), sent)
    assert made["roleRef"] == {"apiGroup": RBAC_GROUP, "kind": "Role", "name": "r"}
    assert made["subjects"] == [
        {"apiGroup": RBAC_GROUP, "kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s"},
    ]
    assert "generation" not in made["metadata"]
    answer = await api.send(
        "PATCH",
        api.path("rolebindings", "b", group=RBAC),
        {"roleRef": {"name": "another"}},
        media="application/merge-patch+json",
    )
    assert answer.status == 422
    assert answer.causes == [("FieldValueInvalid", "roleRef")]
    assert "cannot change roleRef" in answer.body["message"]


async def test_names_of_roles_may_hold_colons_but_no_slash(api: Bench) -> None:
    path = api.path("roles", group=RBAC)
    assert (await api.create(path, _role(name="a:b")))["metadata"]["name"] == "a:b"
    assert (await api.send("POST", path, _role(name="a/b"))).status == 422
    # A PUT of one that is not there makes it, and a deletion answers with a Status.
    other = _role(name="c")
    assert (await api.send("PUT", f"{path}/c", other)).status == 201
    assert (await api.delete(f"{path}/c"))["kind"] == "Status"


# Reviews ----------------------------------------------------------------------------------------


async def test_a_review_says_by_what_somebody_may(api: Bench, stranger: Bench) -> None:
    await _grant(api, _rule(["configmaps"], ["get"]))
    asked = {"resource": "configmaps", "verb": "get", "namespace": api.namespace}
    allowed = await _review(api, resourceAttributes=asked, user=STRANGER)
    by = f'RoleBinding "b/{api.namespace}" of Role "r" to User "stranger"'
    assert allowed == {"allowed": True, "reason": f"RBAC: allowed by {by}"}
    denied = await _review(api, resourceAttributes={**asked, "verb": "delete"}, user=STRANGER)
    assert denied == {"allowed": False}
    own = await stranger.create(
        f"{AUTHORIZATION}/selfsubjectaccessreviews", {"spec": {"resourceAttributes": asked}}
    )
    assert own["status"] == allowed
    refused = await stranger.send("POST", f"{AUTHORIZATION}/subjectaccessreviews", {"spec": {}})
    assert refused.status == 403


async def test_a_review_must_ask_one_thing_of_somebody(api: Bench) -> None:
    path = f"{AUTHORIZATION}/subjectaccessreviews"
    answer = await api.send("POST", path, {"spec": {}})
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [
        ("FieldValueInvalid", "spec.resourceAttributes"),
        ("FieldValueInvalid", "spec.user"),
    ]
    status = await _review(
        api, nonResourceAttributes={"path": "/metrics", "verb": "get"}, user=STRANGER
    )
    assert status["allowed"] is False


async def test_a_token_is_whose_it_was_made_for(api: Bench) -> None:
    accounts = api.path("serviceaccounts")
    account = await api.create(accounts, {"metadata": {"name": "robot"}})
    path = f"{accounts}/robot/token"
    made = await api.create(path, {"spec": {"expirationSeconds": 600}})
    assert (made["kind"], made["metadata"]["name"]) == ("TokenRequest", "robot")
    assert made["spec"]["expirationSeconds"] == 600
    token = made["status"]["token"]
    assert token.count(".") == 2

    review = await api.create(f"{AUTHENTICATION}/tokenreviews", {"spec": {"token": token}})
    name = f"system:serviceaccount:{api.namespace}:robot"
    assert review["status"]["authenticated"] is True
    user = review["status"]["user"]
    assert (user["username"], user["uid"]) == (name, account["metadata"]["uid"])
    assert set(user["groups"]) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{api.namespace}",
        "system:authenticated",
    }
    async with _as(api, STRANGER, token=token) as robot:
        refused = await robot.send("GET", api.config_maps("x"))
        assert refused.status == 403
        assert f'User "{name}" cannot get' in refused.body["message"]
        own = await robot.create(f"{AUTHENTICATION}/selfsubjectreviews", {})
        assert own["status"]["userInfo"]["username"] == name


async def test_a_token_for_others_ears_is_not_for_the_server(api: Bench) -> None:
    accounts = api.path("serviceaccounts")
    await api.create(accounts, {"metadata": {"name": "robot"}})
    made = await api.create(f"{accounts}/robot/token", {"spec": {"audiences": ["elsewhere"]}})
    token = made["status"]["token"]
    for audiences, good in (([], False), (["elsewhere", "x"], True)):
        spec = {"token": token, "audiences": audiences}
        review = await api.create(f"{AUTHENTICATION}/tokenreviews", {"spec": spec})
        assert review["status"].get("authenticated", False) is good
        assert review["status"].get("audiences", []) == (["elsewhere"] if good else [])
    async with _as(api, STRANGER, token=token) as robot:
        assert (await robot.send("GET", api.config_maps("x"))).status == 401


async def test_a_token_that_is_none_is_nobodys(api: Bench) -> None:
    path = f"{AUTHENTICATION}/tokenreviews"
    review = await api.create(path, {"spec": {"token": "no.such.token"}})
    assert "authenticated" not in review["status"]
    assert review["status"]["user"] == {}
    assert "invalid bearer token" in review["status"]["error"]
    assert (await api.send("POST", path, {"spec": {}})).reason == "BadRequest"


async def test_a_token_lasts_ten_minutes_at_least(api: Bench) -> None:
    accounts = api.path("serviceaccounts")
    await api.create(accounts, {"metadata": {"name": "robot"}})
    answer = await api.send("POST", f"{accounts}/robot/token", {"spec": {"expirationSeconds": 5}})
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "spec.expirationSeconds")]
    assert (await api.send("POST", f"{accounts}/nobody/token", {})).reason == "NotFound"


async def test_one_may_pose_as_another_with_leave_only(api: Bench, stranger: Bench) -> None:
    async def ask(bench: Bench) -> Document:
        headers = {"impersonate-user": "somebody", "accept": "application/json"}
        request = Request("GET", api.config_maps("x"), (), headers)
        response = await bench.transport.request(request)
        assert response.status == 403
        message: Document = orjson.loads(response.body)
        return message

    assert 'User "somebody" cannot get resource "configmaps"' in (await ask(api))["message"]
    assert (await ask(stranger))["message"] == (
        'users "somebody" is forbidden: User "stranger" cannot impersonate resource "users" '
        'in API group "" at the cluster scope'
    )
