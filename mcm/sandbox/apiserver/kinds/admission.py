"""Kinds of who is asked before a change is stored: configurations of webhooks."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.kinds.meta import LABEL_SELECTOR, OBJECT_META
from mcm.sandbox.apiserver.kinds.notation import (
    INTEGER,
    STRING,
    described,
    keyed_list,
    list_of,
    strings,
    struct,
)
from mcm.sandbox.apiserver.registry import ResourceInfo

ADMISSION_GROUP = "admissionregistration.k8s.io"
VALIDATING_WEBHOOKS = f"validatingwebhookconfigurations.{ADMISSION_GROUP}"
MUTATING_WEBHOOKS = f"mutatingwebhookconfigurations.{ADMISSION_GROUP}"

_TEXTS = list_of(STRING)
_WEBHOOK: dict[str, JSONObject] = {
    **strings("name", "failurePolicy", "matchPolicy", "sideEffects"),
    "admissionReviewVersions": _TEXTS,
    "clientConfig": struct(
        {
            "caBundle": {"type": "string", "format": "byte"},
            "service": struct({**strings("name", "namespace", "path"), "port": INTEGER}),
            "url": STRING,
        }
    ),
    "matchConditions": keyed_list(struct(strings("expression", "name")), "name"),
    "namespaceSelector": LABEL_SELECTOR,
    "objectSelector": LABEL_SELECTOR,
    "rules": list_of(
        struct(
            {
                **dict.fromkeys(("apiGroups", "apiVersions", "operations", "resources"), _TEXTS),
                "scope": STRING,
            }
        )
    ),
    "timeoutSeconds": INTEGER,
}


def _configuration(webhook: dict[str, JSONObject], description: str) -> JSONObject:
    webhooks = described(keyed_list(struct(webhook), "name"), "Who is asked, and about what.")
    return struct({"metadata": OBJECT_META, "webhooks": webhooks}, description=description)


VALIDATING_WEBHOOK_CONFIGURATION = _configuration(
    _WEBHOOK, "Servers that are asked whether a change may be stored."
)
MUTATING_WEBHOOK_CONFIGURATION = _configuration(
    {**_WEBHOOK, "reinvocationPolicy": STRING}, "Servers that may amend what is to be stored."
)


def _info(plural: str, kind: str) -> ResourceInfo:
    return ResourceInfo(
        ADMISSION_GROUP,
        "v1",
        plural,
        kind,
        namespaced=False,
        categories=("api-extensions",),
        builtin=True,
    )


ADMISSION_RESOURCES: tuple[ResourceInfo, ...] = (
    _info("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    _info("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
)
