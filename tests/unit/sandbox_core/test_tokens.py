"""Tokens of service accounts end; a real server remembers for some seconds that they were good."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mcm.sandbox.apiserver.errors import StatusError
from tests.unit.sandbox_core.workbench import PODS, Document, ManualClock, Workbench

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def _token(api: Workbench, **spec: object) -> str:
    api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    made = api.create(f"{ACCOUNTS}/robot/token", {"spec": spec})
    return str(made["status"]["token"])


def _review(api: Workbench, token: str) -> Document:
    status: Document = api.create(REVIEWS, {"spec": {"token": token}})["status"]
    return status


def _user(api: Workbench, token: str) -> str:
    return api.server.identify([("Authorization", f"Bearer {token}")]).name


def test_a_token_ends_with_its_time(api: Workbench) -> None:
    token = _token(api, expirationSeconds=600)
    assert isinstance(api.clock, ManualClock)
    api.clock.advance(599)
    assert _user(api, token) == "system:serviceaccount:default:robot"
    api.clock.advance(1)
    assert _review(api, token) == {"user": {}, "error": "service account token has expired"}
    with pytest.raises(StatusError, match="Unauthorized"):
        _user(api, token)


def test_a_token_ends_with_its_account_though_another_takes_the_name(api: Workbench) -> None:
    token = _token(api)
    api.delete(f"{ACCOUNTS}/robot")
    api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert "invalidated" in _review(api, token)["error"]


def test_a_token_ends_with_the_pod_that_it_is_bound_to(api: Workbench) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.create(PODS, pod)
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p"}
    token = _token(api, boundObjectRef=bound)
    extra = _review(api, token)["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    api.delete(f"{PODS}/p", gracePeriodSeconds="0")
    assert "invalidated" in _review(api, token)["error"]


@pytest.mark.parametrize("damage", [lambda t: t[:-2], lambda t: f"x{t}", lambda t: t.upper()])
def test_a_token_that_was_touched_is_nobodys(api: Workbench, damage: Callable[[str], str]) -> None:
    assert _review(api, damage(_token(api)))["error"] == "invalid bearer token"


def test_another_servers_token_is_nobodys(api: Workbench) -> None:
    assert _review(api, _token(Workbench()))["error"] == "invalid bearer token"


def test_everybody_may_everything_unless_rules_are_asked_for(api: Workbench) -> None:
    spec = {"user": "x", "resourceAttributes": {"verb": "delete", "resource": "nodes"}}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    assert api.create(path, {"spec": spec})["status"] == {"allowed": True}
    api.server.settings.authorization = "RBAC"
    assert api.create(path, {"spec": spec})["status"] == {"allowed": False}
