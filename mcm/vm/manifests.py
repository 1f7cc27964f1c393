"""Reads a machine class and its secrets from manifest files, as ``kubectl apply`` takes them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from mcm.api.codec import DecodeError, decode_object
from mcm.api.machine import MACHINE_CLASSES, MachineClass
from mcm.api.meta import JSONObject
from mcm.api.names import KIND_MACHINE_CLASS
from mcm.api.validation import describe, validate_machine_class
from mcm.client.errors import ConfigurationError
from mcm.manifest_files import documents


def read_class(path: Path) -> MachineClass:
    """Return the only MachineClass in ``path``.

    Raises ConfigurationError, which names the file and what is wrong with it.
    """
    document = _only(path, KIND_MACHINE_CLASS)
    try:
        class_ = decode_object(MACHINE_CLASSES, orjson.dumps(document))
    except DecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from None
    except TypeError as error:  # YAML has keys and values that JSON has not
        raise ConfigurationError(f"{path}: {error}") from None
    if errors := validate_machine_class(class_):
        raise ConfigurationError(f"{path}: {describe(errors)}")
    return class_


def read_secrets(paths: Sequence[Path]) -> Mapping[str, bytes]:
    """Return the data of the Secrets in ``paths``, one in each; later files override earlier ones.

    Raises ConfigurationError, which names the file and key, and never shows a value.
    """
    data: dict[str, bytes] = {}
    for path in paths:
        secret = _only(path, "Secret")
        data.update(_decoded(path, secret))
        data.update(_plain(path, secret))
    return data


def _decoded(path: Path, secret: JSONObject) -> Iterator[tuple[str, bytes]]:
    for key, text in _texts(path, secret, "data"):
        try:
            yield key, base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigurationError(
                f"{path}: data.{key} is not base64; plain text belongs into stringData"
            ) from None


def _plain(path: Path, secret: JSONObject) -> Iterator[tuple[str, bytes]]:
    for key, text in _texts(path, secret, "stringData"):
        yield key, text.encode()


def _texts(path: Path, secret: JSONObject, field: str) -> Iterator[tuple[str, str]]:
    entries = secret.get(field) or {}
    if not isinstance(entries, dict):
        raise ConfigurationError(f"{path}: {field} must be a mapping of keys to texts")
    for key, text in entries.items():
        if not isinstance(text, str):
            raise ConfigurationError(f"{path}: {field}.{key} must be a text; put it into quotes")
        yield str(key), text


def _only(path: Path, kind: str) -> JSONObject:
    found = list(documents(path))
    meant = [document for document in found if document.get("kind") == kind]
    if len(meant) == 1:
        return meant[0]
    kinds = ", ".join(str(d.get("kind", "no kind")) for d in found) or "nothing"
    raise ConfigurationError(f"{path}: exactly one {kind} is expected; there is: {kinds}")
