"""Holds the CustomResourceDefinitions of a cluster against those that the manager works with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcm.api.crds import crd_manifests
from mcm.api.machine import GROUP, VERSION
from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import JSONDocument, Seen, Unread

_CHECK: Final = "crd"
_APPLY: Final = "mcm crds | kubectl apply -f -"
_APPLY_SIMULATED: Final = "mcm crds --provider simulated | kubectl apply -f -"
_SHOWN: Final = 8


def check_crds(seen: Seen) -> Iterator[Finding]:
    ours: Mapping[str, Any] = {m["metadata"]["name"]: m for m in _manifests()}
    for name, found in seen.crds.items():
        remedy = _APPLY if name in ours else _APPLY_SIMULATED
        if found is None:
            yield problem(_CHECK, name, "is not installed", remedy)
        elif isinstance(found, Unread):
            yield _unread(name, found, seen)
        elif name in ours:
            yield from _compared(name, found, ours[name])
        else:
            yield ok(_CHECK, name, "is installed")


def _unread(name: str, found: Unread, seen: Seen) -> Finding:
    """Say what discovery tells of a definition that this user may not read."""
    plural, _, group = name.partition(".")
    served = seen.served.get(f"{GROUP}/{VERSION}", ())
    if group == GROUP and not isinstance(served, Unread) and plural not in served:
        return problem(_CHECK, name, "is not served", _APPLY)
    text = f"its schema cannot be compared: {found.why}"
    return warning(_CHECK, name, text, "run this once as an administrator, too")


def _manifests() -> list[Any]:
    return list(crd_manifests())


def _compared(name: str, found: JSONDocument, ours: JSONDocument) -> Iterator[Finding]:
    spec, faults = found.get("spec", {}), 0
    if spec.get("scope") != ours["spec"]["scope"]:
        yield problem(_CHECK, name, f"is {spec.get('scope')}, not Namespaced", "install our CRDs")
        faults += 1
    if (spec.get("conversion") or {}).get("strategy", "None") != "None":
        text = "its versions are converted by a webhook, which has to answer"
        yield warning(_CHECK, name, text, "see to it that it runs, or remove the conversion")
        faults += 1
    if not _condition(found, "Established"):
        yield problem(_CHECK, name, "is not established", f"kubectl describe crd {name}")
        faults += 1
    versions = {version["name"]: version for version in spec.get("versions", ())}
    version = versions.get(VERSION)
    if version is None or not version.get("served"):
        yield problem(_CHECK, name, f"does not serve {VERSION}", _APPLY)
        return
    if not version.get("storage"):
        stored = next((v for v, said in versions.items() if said.get("storage")), "?")
        text = f"objects are stored as {stored}, not {VERSION}"
        yield warning(_CHECK, name, text, "make sure that no field is lost between the two")
        faults += 1
    (wanted,) = (v for v in ours["spec"]["versions"] if v["name"] == VERSION)
    for subresource in wanted.get("subresources", {}):
        if subresource not in (version.get("subresources") or {}):
            yield problem(_CHECK, name, f"has no subresource {subresource}", _APPLY)
            faults += 1
    lost = list(_lost(_schema(version), _schema(wanted)))
    if lost:
        shown = ", ".join(lost[:_SHOWN]) + (
            f" and {len(lost) - _SHOWN} more" if lost[_SHOWN:] else ""
        )
        text = f"the server drops or refuses {shown}"
        yield warning(_CHECK, name, text, f"{_APPLY} (the Go original works with these as well)")
        faults += 1
    if not faults:
        yield ok(_CHECK, name, f"{VERSION} is served and stored, with every field there is")


def _lost(theirs: JSONDocument, ours: JSONDocument, path: str = "") -> Iterator[str]:
    """Yield the fields of ``ours`` for which ``theirs`` has no place, or another type."""
    if theirs.get("x-kubernetes-preserve-unknown-fields") and not theirs.get("properties"):
        return
    if (theirs.get("type") or ours.get("type")) != (ours.get("type") or theirs.get("type")):
        yield f"{path} (is {theirs.get('type')}, not {ours.get('type')})"
        return
    for name, field in (ours.get("properties") or {}).items():
        known = (theirs.get("properties") or {}).get(name)
        where = f"{path}.{name}" if path else str(name)
        if known is not None:
            yield from _lost(known, field, where)
        elif not theirs.get("x-kubernetes-preserve-unknown-fields") and path != "metadata":
            yield where
    if isinstance(ours.get("items"), dict) and isinstance(theirs.get("items"), dict):
        yield from _lost(theirs["items"], ours["items"], f"{path}[]")


def _schema(version: JSONDocument) -> JSONDocument:
    schema: JSONDocument = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def _condition(found: JSONDocument, kind: str) -> bool:
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)
