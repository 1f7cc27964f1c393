"""Which form the client wants: plain objects, a Table, or metadata alone."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from mcm.sandbox.apiserver.errors import not_acceptable

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_JSON_TYPES = frozenset({"application/json", "*/*", "application/*"})


class Form(Enum):
    """What an answer's objects look like."""

    PLAIN = "plain"
    TABLE = "Table"
    METADATA = "PartialObjectMetadata"


@lru_cache(maxsize=256)
def accepted_form(accept: str) -> Form:
    """Return the first form of an Accept header that the server can make.

    Raises StatusError (406) if there is none; an empty header means plain JSON.
    """
    if not accept:
        return Form.PLAIN
    for clause in accept.split(","):
        form = _form_of(clause)
        if form is not None:
            return form
    raise not_acceptable()


def _form_of(clause: str) -> Form | None:
    media_type, *raw_parameters = (part.strip() for part in clause.split(";"))
    if media_type not in _JSON_TYPES:
        return None
    parameters = dict(p.partition("=")[::2] for p in raw_parameters)
    wanted = parameters.get("as", "")
    if not wanted:
        return Form.PLAIN
    if parameters.get("g") != "meta.k8s.io" or parameters.get("v") != "v1":
        return None
    if wanted == "Table":
        return Form.TABLE
    # A list of metadata is asked for by the list's kind, a watch or an object by the item's.
    if wanted in ("PartialObjectMetadata", "PartialObjectMetadataList"):
        return Form.METADATA
    return None


@lru_cache(maxsize=64)
def media_type_of(content_type: str) -> str:
    """Return the bare media type of a Content-Type header, in lower case."""
    return content_type.partition(";")[0].strip().lower()
