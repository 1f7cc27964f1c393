"""Whether a rule of a role covers a request."""

from __future__ import annotations

from collections.abc import Iterable

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.authorization.attributes import Attributes

_ALL = "*"


def allows(rule: JSONObject, attributes: Attributes) -> bool:
    """Tell whether the rule alone allows the request."""
    if attributes.verb not in (verbs := texts(rule, "verbs")) and _ALL not in verbs:
        return False
    if not attributes.is_for_resource:
        return any(_covers(path, attributes.path) for path in texts(rule, "nonResourceURLs"))
    groups = texts(rule, "apiGroups")
    if attributes.group not in groups and _ALL not in groups:
        return False
    if not _covers_resource(texts(rule, "resources"), attributes):
        return False
    names = texts(rule, "resourceNames")
    return not names or attributes.name in names


def texts(rule: JSONObject, field: str) -> list[str]:
    found = rule.get(field)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def _covers_resource(resources: Iterable[str], attributes: Attributes) -> bool:
    covering = {_ALL, attributes.full_resource}
    if attributes.subresource:
        covering.add(f"{_ALL}/{attributes.subresource}")
    return any(resource in covering for resource in resources)


def _covers(wanted: str, path: str) -> bool:
    if wanted.endswith(_ALL):
        return path.startswith(wanted.removesuffix(_ALL))
    return wanted == path
