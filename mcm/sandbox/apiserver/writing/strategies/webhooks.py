"""Configurations of webhooks: their defaults, and what makes one useless."""

from __future__ import annotations

from collections.abc import Mapping

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import (
    StatusCause,
    invalid,
    not_supported,
    required,
    wrong_value,
)
from mcm.sandbox.apiserver.kinds.admission import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.requests.calls import ServerState
from mcm.sandbox.apiserver.store import Stored
from mcm.sandbox.apiserver.writing.strategies.strategy import (
    Strategy,
    name_of,
    object_in,
    objects_in,
    texts_in,
)

_POLICIES = ("Fail", "Ignore")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_TIMEOUT = 30
_DEFAULTS: Mapping[str, object] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "timeoutSeconds": 10,
}
_PORT = 443


def _validating(_: ServerState, info: ResourceInfo, obj: JSONObject, __: Stored | None) -> None:
    _configured(info, obj, _DEFAULTS)


def _mutating(_: ServerState, info: ResourceInfo, obj: JSONObject, __: Stored | None) -> None:
    _configured(info, obj, {**_DEFAULTS, "reinvocationPolicy": "Never"})


def _configured(info: ResourceInfo, obj: JSONObject, defaults: Mapping[str, object]) -> None:
    webhooks = objects_in(obj, "webhooks")
    causes: list[StatusCause] = []
    for index, webhook in enumerate(webhooks):
        for field, value in defaults.items():
            if webhook.get(field) is None:
                webhook[field] = value
        for field in ("namespaceSelector", "objectSelector"):
            webhook[field] = object_in(webhook, field)
        _default_rules(webhook)
        causes += _faults(webhook, f"webhooks[{index}]")
    if causes:
        raise invalid(info, name_of(obj), causes)
    if webhooks:
        obj["webhooks"] = webhooks


def _default_rules(webhook: JSONObject) -> None:
    rules = objects_in(webhook, "rules")
    for rule in rules:
        rule["scope"] = rule.get("scope") or "*"
    if rules:
        webhook["rules"] = rules
    client = object_in(webhook, "clientConfig")
    if isinstance(client.get("service"), dict):
        client["service"] = {"port": _PORT, **object_in(client, "service")}
    webhook["clientConfig"] = client


def _faults(webhook: JSONObject, path: str) -> list[StatusCause]:
    causes: list[StatusCause] = []
    name = str(webhook.get("name") or "")
    if name.count(".") < 2:
        why = "should be a domain with at least three segments separated by dots"
        causes.append(wrong_value(f"{path}.name", name, why))
    if not texts_in(webhook, "admissionReviewVersions"):
        why = "must specify one of v1, v1beta1"
        causes.append(required(f"{path}.admissionReviewVersions", why))
    if webhook["failurePolicy"] not in _POLICIES:
        sent = str(webhook["failurePolicy"])
        causes.append(not_supported(f"{path}.failurePolicy", sent, _POLICIES))
    if not webhook.get("sideEffects"):
        why = "must specify one of None, NoneOnDryRun"
        causes.append(required(f"{path}.sideEffects", why))
    elif webhook["sideEffects"] not in _SIDE_EFFECTS:
        sent = str(webhook["sideEffects"])
        causes.append(not_supported(f"{path}.sideEffects", sent, _SIDE_EFFECTS))
    seconds = webhook["timeoutSeconds"]
    if not isinstance(seconds, int) or not 1 <= seconds <= _LONGEST_TIMEOUT:
        why = "the timeout value must be between 1 and 30 seconds"
        causes.append(wrong_value(f"{path}.timeoutSeconds", seconds, why))
    client = object_in(webhook, "clientConfig")
    if bool(client.get("url")) == bool(client.get("service")):
        why = "exactly one of url or service is required"
        causes.append(required(f"{path}.clientConfig", why))
    return causes


WEBHOOK_STRATEGIES: Mapping[str, Strategy] = {
    VALIDATING_WEBHOOKS: _validating,
    MUTATING_WEBHOOKS: _mutating,
}
