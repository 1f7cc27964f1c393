"""The ValidatingWebhookConfiguration that makes an API server ask us."""

from __future__ import annotations

import base64
from typing import Final

from mcm.api.machine import GROUP, MACHINE_DEPLOYMENTS, MACHINE_SETS, VERSION
from mcm.api.meta import JSONObject
from mcm.api.validation import EXAMINED
from mcm.webhook.server import PATH

NAME: Final = "mcm-validation"
WEBHOOK: Final = f"validation.{GROUP}"
_TIMEOUT_SECONDS: Final = 5


def webhook_configuration(
    *,
    service: str = "",
    namespace: str = "",
    port: int = 443,
    url: str = "",
    ca: bytes = b"",
    fail: bool = False,
) -> JSONObject:
    """Return the manifest. The API server asks ``service`` in ``namespace``, or ``url`` if given,
    and trusts ``ca`` (PEM; empty: somebody else fills it in, or the server's own roots).

    Unless ``fail``, what cannot be asked lets everything in: the controllers check the same.
    """
    client: JSONObject = (
        {"url": url}
        if url
        else {"service": {"name": service, "namespace": namespace, "path": PATH, "port": port}}
    )
    if ca:
        client["caBundle"] = base64.b64encode(ca).decode()
    scaled = [f"{r.plural}/scale" for r in (MACHINE_SETS, MACHINE_DEPLOYMENTS)]
    rule: JSONObject = {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": ["CREATE", "UPDATE"],
        "resources": [*(resource.plural for resource in EXAMINED), *scaled],
        "scope": "Namespaced",
    }
    webhook: JSONObject = {
        "name": WEBHOOK,
        "admissionReviewVersions": ["v1"],
        "clientConfig": client,
        "failurePolicy": "Fail" if fail else "Ignore",
        "matchPolicy": "Equivalent",
        "rules": [rule],
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME},
        "webhooks": [webhook],
    }
