"""Which webhooks are concerned by a change.

Match conditions (CEL) are not evaluated: a webhook that has some is asked about all that its rules
and selectors name.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast, final

import msgspec

from mcm.api.meta import JSONObject, LabelSelector
from mcm.api.selectors import matches
from mcm.sandbox.apiserver.authentication.users import User
from mcm.sandbox.apiserver.authorization.rules import texts
from mcm.sandbox.apiserver.kinds.admission import ADMISSION_GROUP, VALIDATING_WEBHOOKS
from mcm.sandbox.apiserver.kinds.builtin import NAMESPACES
from mcm.sandbox.apiserver.registry import CREATE_ONLY, ResourceInfo
from mcm.sandbox.apiserver.store import Store

SCALE = "scale"
_ALL = "*"


@final
@dataclass(frozen=True, slots=True)
class Change:
    """What is about to be stored. ``obj`` is None for a deletion, ``old`` for a creation."""

    info: ResourceInfo
    operation: str
    user: User
    namespace: str
    name: str
    subresource: str
    obj: JSONObject | None
    old: JSONObject | None
    dry_run: bool = False


@final
@dataclass(frozen=True, slots=True)
class Webhook:
    """``service`` is empty where there is a ``url``; ``ca`` is in PEM, empty for the system's."""

    name: str
    url: str
    service: JSONObject
    ca: str
    timeout: int
    fails: bool


def concerned(store: Store, change: Change) -> Iterator[Webhook]:
    """Yield the webhooks that a change must pass. Configurations of webhooks pass none."""
    if change.info.group == ADMISSION_GROUP:
        return
    for configuration in store.collection(VALIDATING_WEBHOOKS).ordered(None):
        for webhook in _objects(configuration.body.get("webhooks")):
            if _is_about(webhook, change) and _selects(store, webhook, change):
                yield _read(webhook)


def is_watched(store: Store, info: ResourceInfo, subresource: str) -> bool:
    """Tell whether any webhook may want to know of a change to a kind. Of evictions, bindings and
    tokens nobody is told, nor are reviews shown."""
    if subresource not in ("", SCALE, "status") or info.verbs == CREATE_ONLY:
        return False
    return any(
        text == _ALL or text.startswith("*/") or text.partition("/")[0] == info.plural
        for configuration in store.collection(VALIDATING_WEBHOOKS).ordered(None)
        for webhook in _objects(configuration.body.get("webhooks"))
        for rule in _objects(webhook.get("rules"))
        for text in texts(rule, "resources")
    )


def _is_about(webhook: JSONObject, change: Change) -> bool:
    return any(_covers(rule, change) for rule in _objects(webhook.get("rules")))


def _covers(rule: JSONObject, change: Change) -> bool:
    scope = "Namespaced" if change.info.namespaced else "Cluster"
    return (
        _names(rule, "operations", change.operation)
        and _names(rule, "apiGroups", change.info.group)
        and _names(rule, "apiVersions", change.info.version)
        and any(_names_resource(text, change) for text in texts(rule, "resources"))
        and rule.get("scope", _ALL) in (_ALL, scope)
    )


def _names(rule: JSONObject, field: str, value: str) -> bool:
    found = texts(rule, field)
    return value in found or _ALL in found


def _names_resource(text: str, change: Change) -> bool:
    resource, _, subresource = text.partition("/")
    is_sub = subresource in (_ALL, change.subresource) if subresource else not change.subresource
    return resource in (_ALL, change.info.plural) and is_sub


def _selects(store: Store, webhook: JSONObject, change: Change) -> bool:
    if not _matches(webhook.get("namespaceSelector"), _namespace_labels(store, change)):
        return False
    states = [state for state in (change.obj, change.old) if state is not None]
    return any(_matches(webhook.get("objectSelector"), _labels(state)) for state in states)


def _namespace_labels(store: Store, change: Change) -> Mapping[str, str] | None:
    """Return None for what is in no namespace, which every selector takes."""
    if change.info.storage == NAMESPACES:
        return _labels(change.obj or change.old or {})
    if not change.info.namespaced:
        return None
    found = store.collection(NAMESPACES).get(change.namespace)
    return _labels(found.body) if found is not None else {}


def _matches(selector: object, labels: Mapping[str, str] | None) -> bool:
    if not selector or labels is None:
        return True
    try:
        return matches(msgspec.convert(selector, LabelSelector), labels)
    except msgspec.ValidationError:
        return False


def _labels(obj: JSONObject) -> Mapping[str, str]:
    meta = obj.get("metadata")
    found = meta.get("labels") if isinstance(meta, dict) else None
    return cast("Mapping[str, str]", found) if isinstance(found, dict) else {}


def _objects(found: object) -> list[JSONObject]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _read(webhook: JSONObject) -> Webhook:
    client = cast(JSONObject, webhook.get("clientConfig") or {})
    return Webhook(
        str(webhook.get("name")),
        url=str(client.get("url") or ""),
        service=cast(JSONObject, client.get("service") or {}),
        ca=base64.b64decode(str(client.get("caBundle") or "")).decode(),
        timeout=cast(int, webhook.get("timeoutSeconds", 10)),
        fails=webhook.get("failurePolicy", "Fail") == "Fail",
    )
