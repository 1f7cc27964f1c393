"""Whose write a change is: the answer is compared with what the request asked for.

Who writes goes on from the answer, and need not be told of it. But an answer may hold more than the
write: what others changed a moment before, and the watch has not brought yet. Then it is news to
everybody, the writer included.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import msgspec

from mcm.api.meta import KubeObject, T
from mcm.api.patches import merged
from mcm.client.requests import Call, PatchType
from mcm.informers.versions import same_content

Author: TypeAlias = Callable[[], str]
"""Names whoever writes at the moment; empty: nobody in particular."""

_Document: TypeAlias = dict[str, Any]
_SECTIONS = ("metadata", "spec", "status")
_WITHIN_SECTIONS = frozenset({"apiVersion", "kind", *_SECTIONS})
_REMOVED_FINALIZERS = "$deleteFromPrimitiveList/finalizers"


def holds_nothing_else(old: T, call: Call, new: T) -> bool:
    """Tell whether ``new`` is ``old`` with nothing changed but what the patch of ``call`` says.

    Generations aside: servers count them. Where that cannot be told, the answer is no.
    """
    if call.verb != "PATCH" or old.metadata.uid != new.metadata.uid:
        return False
    expected = _expected(old, call, new)
    if expected is None:
        return False
    counted = msgspec.structs.replace(expected.metadata, generation=new.metadata.generation)
    return same_content(_with_metadata(expected, counted), new)


def _expected(old: T, call: Call, new: T) -> T | None:
    kind = call.headers.get("Content-Type")
    if kind not in (PatchType.MERGE, PatchType.STRATEGIC):
        return None
    asked = msgspec.json.decode(call.body, type=_Document)
    document, patch = _document(old, asked), cast("_Document | None", asked)
    if kind == PatchType.STRATEGIC:
        patch = _as_merge_patch(document, asked, _document(new, asked))
    if patch is None:
        return None
    try:
        # Versions are preconditions in a patch, and differ in any case.
        return _patched(old, document, patch)
    except msgspec.ValidationError:
        return None


def _patched(old: T, document: _Document, patch: _Document) -> T:
    if not patch.keys() <= _WITHIN_SECTIONS:
        return msgspec.convert(merged(document, patch), type(old))
    changed = {
        name: msgspec.convert(merged(section, patch[name]), type(getattr(old, name)))
        for name, section in document.items()
    }
    return cast("T", msgspec.structs.replace(cast("Any", old), **changed))


def _as_merge_patch(document: _Document, patch: _Document, answer: _Document) -> _Document | None:
    """Rewrite a strategic patch, as far as its meaning is the same for every kind that takes one:
    finalizers are added or removed one by one, conditions replaced by type, other lists as a whole.

    None if there are other directives. Where a server merges another list, too, the answer simply
    does not match.
    """
    plain = dict(patch)
    if "metadata" in patch:
        before = document.get("metadata", {}).get("finalizers", ())
        plain["metadata"] = _with_finalizers(before, patch["metadata"])
    if "conditions" in patch.get("status", {}):
        conditions = _conditions_by_type(document)
        for condition in patch["status"]["conditions"]:
            type_ = condition["type"]
            conditions[type_] = {**conditions.get(type_, {}), **condition}
        # Where among the others a server puts a new one is its own affair.
        order = [type_ for type_ in _conditions_by_type(answer) if type_ in conditions]
        rest = [type_ for type_ in conditions if type_ not in order]
        listed = [conditions[type_] for type_ in (*order, *rest)]
        plain["status"] = {**patch["status"], "conditions": listed}
    return None if _has_directive(plain) else plain


def _with_finalizers(before: tuple[str, ...], metadata: _Document) -> _Document:
    added, removed = metadata.get("finalizers", ()), metadata.get(_REMOVED_FINALIZERS, ())
    if not added and not removed:
        return metadata
    rest = {key: value for key, value in metadata.items() if key != _REMOVED_FINALIZERS}
    names = [name for name in dict.fromkeys((*before, *added)) if name not in removed]
    return {**rest, "finalizers": names}


def _conditions_by_type(document: _Document) -> dict[str, _Document]:
    return {c.get("type", ""): c for c in document.get("status", {}).get("conditions", ())}


def _has_directive(value: object) -> bool:
    if isinstance(value, dict):
        return any(key.startswith("$") or _has_directive(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_directive, value))


def _document(obj: KubeObject, patch: _Document) -> _Document:
    """As much of ``obj`` as ``patch`` can change: most patches concern one section of three."""
    if not patch.keys() <= _WITHIN_SECTIONS:
        return cast("_Document", msgspec.to_builtins(obj))
    names = [name for name in _SECTIONS if name in patch and hasattr(obj, name)]
    return {name: msgspec.to_builtins(getattr(obj, name)) for name in names}


def _with_metadata(obj: T, metadata: object) -> T:
    return cast("T", msgspec.structs.replace(cast("Any", obj), metadata=metadata))
