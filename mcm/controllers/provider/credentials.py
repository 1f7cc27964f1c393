"""The secrets a class refers to, merged as the provider gets them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import final

from mcm.api.core import Secret, SecretReference
from mcm.api.machine import MachineClass


@final
@dataclass(frozen=True, slots=True)
class Credentials:
    """Decoded data; ``problems`` name what is missing or broken, and the remedy."""

    data: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    problems: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    """Versions of the secrets read: when they change, what failed may be tried again."""


def secret_keys_of(machine_class: MachineClass) -> tuple[str, ...]:
    """Return the store keys of the class's secrets; the later ones override the earlier."""
    return tuple(dict.fromkeys(key for _, key in _references(machine_class)))


def collect(machine_class: MachineClass, find: Callable[[str], Secret | None]) -> Credentials:
    """Merge the class's secrets; ``find`` looks one up by ``namespace/name``."""
    data: dict[str, bytes] = {}
    problems: list[str] = []
    versions: list[str] = []
    for field_name, key in _references(machine_class):
        secret = find(key)
        if secret is None:
            problems.append(
                f"secret {key} not found: create it, or correct {field_name} of machine class "
                f"{machine_class.metadata.key}"
            )
            continue
        versions.append(f"{key}@{secret.metadata.resource_version}")
        decoded, broken = _decode(secret)
        data.update(decoded)
        problems.extend(f"secret {key}: data[{name}] is not base64" for name in broken)
    return Credentials(data, tuple(problems), tuple(versions))


def _references(machine_class: MachineClass) -> Iterator[tuple[str, str]]:
    namespace = machine_class.metadata.namespace
    for field_name, reference in (
        ("secretRef", machine_class.secret_ref),
        ("credentialsSecretRef", machine_class.credentials_secret_ref),
    ):
        if reference is not None and reference.name:
            yield field_name, _key(reference, namespace)


def _key(reference: SecretReference, namespace: str) -> str:
    return f"{reference.namespace or namespace}/{reference.name}"


def _decode(secret: Secret) -> tuple[dict[str, bytes], list[str]]:
    decoded: dict[str, bytes] = {}
    broken: list[str] = []
    for name, text in secret.data.items():
        try:
            decoded[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            broken.append(name)
    return decoded, broken
