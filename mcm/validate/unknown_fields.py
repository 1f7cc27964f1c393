"""Fields that no kind has: the API server drops them without a word, so that a typo is lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Final, cast

from mcm.api.crds.schema import root_schema
from mcm.api.meta import JSONObject
from mcm.api.validation import FieldError

_METADATA: Final = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Fields of any object's metadata, which are not in a kind's own schema."""
_ANYTHING: Final = "x-kubernetes-preserve-unknown-fields"


def unknown_fields(kind: type, body: JSONObject) -> Iterator[FieldError]:
    """Yield a warning for each field that objects of ``kind`` do not have; the status is the
    server's matter."""
    written = {key: value for key, value in body.items() if key != "status"}
    yield from _unknown(written, _schema(kind), "")


@lru_cache(maxsize=8)
def _schema(kind: type) -> JSONObject:
    return root_schema(kind)


def _unknown(value: object, schema: Mapping[str, object], path: str) -> Iterator[FieldError]:
    if isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _unknown(item, items, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    if path == "metadata" or path.endswith(".metadata"):
        yield from _named(value, _METADATA, path)
        return
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    if not schema.get(_ANYTHING):
        yield from _named(value, properties, path)
    for key, item in value.items():
        if key in properties:
            below = cast("JSONObject", properties[key])
            yield from _unknown(item, below, f"{path}.{key}".removeprefix("."))


def _named(value: JSONObject, known: Iterable[str], path: str) -> Iterator[FieldError]:
    for key in value:
        if key in known:
            continue
        nearest = get_close_matches(key, list(known), n=1)
        hint = f"; is {nearest[0]} meant?" if nearest else ""
        field = f"{path}.{key}".removeprefix(".")
        yield FieldError(field, f"there is no such field{hint}", is_warning=True)
