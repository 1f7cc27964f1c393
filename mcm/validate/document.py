"""Judges one document by itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Final

import orjson

from mcm.api.labels import is_object_name
from mcm.api.machine import (
    GROUP,
    VERSION,
    MachineClass,
)
from mcm.api.meta import Resource
from mcm.api.validation import EXAMINED, ErrorKind, Examined, FieldError, read_and_examine
from mcm.validate.finding import Document
from mcm.validate.provider_specs import SpecCheck
from mcm.validate.unknown_fields import unknown_fields

API_VERSION: Final = f"{GROUP}/{VERSION}"
_KINDS: Final[Mapping[str, Resource[Examined]]] = {resource.kind: resource for resource in EXAMINED}


def judged(
    document: Document, *, max_replicas: int, check: SpecCheck
) -> tuple[Document, tuple[FieldError, ...]]:
    """Return the document with what could be read of it, and what is to be said; other kinds are
    left alone."""
    faults = tuple(_of_type(document))
    if faults or not is_ours(document):
        return document, faults
    resource = _KINDS[document.kind]
    faults = tuple(_of_name(document))
    try:
        body = orjson.dumps(document.body)
    except TypeError as error:  # YAML has keys and values that JSON has not
        return document, (*faults, FieldError("", f"is no JSON: {error}"))
    obj, read = read_and_examine(resource, body, max_replicas=max_replicas)
    unknown = tuple(unknown_fields(resource.type, document.body))
    specs = tuple(check(obj)) if isinstance(obj, MachineClass) else ()
    return dataclasses.replace(document, obj=obj), (*faults, *read, *specs, *unknown)


def is_ours(document: Document) -> bool:
    return document.body.get("apiVersion") == API_VERSION and document.kind in _KINDS


def _of_type(document: Document) -> Iterator[FieldError]:
    """Say what is wrong with kind and version, where they are, or seem to be, meant to be ours."""
    version, kind = document.body.get("apiVersion"), document.kind
    if not isinstance(version, str) or not version:
        yield FieldError("apiVersion", "every object has one", ErrorKind.REQUIRED)
    elif not kind:
        yield FieldError("kind", "every object has one", ErrorKind.REQUIRED)
    elif version.partition("/")[0] != GROUP:
        if kind in _KINDS:
            detail = f"{kind} is of {API_VERSION}; this one is not looked at"
            yield FieldError("apiVersion", detail, value=version, is_warning=True)
    elif version != API_VERSION:
        yield FieldError("apiVersion", f"must be {API_VERSION}", value=version)
    elif kind not in _KINDS:
        nearest = get_close_matches(kind, _KINDS, n=1)
        hint = f"; is {nearest[0]} meant?" if nearest else ""
        yield FieldError("kind", f"there is no such kind in {GROUP}{hint}", value=kind)


def _of_name(document: Document) -> Iterator[FieldError]:
    name = document.metadata.get("name")
    if not document.name:
        detail = "an object needs a name, or a generateName"
        yield FieldError("metadata.name", detail, ErrorKind.REQUIRED)
    elif isinstance(name, str) and name and not is_object_name(name):
        detail = "must be at most 253 of a-z, 0-9, - and ."
        yield FieldError("metadata.name", detail, value=name[:80])
