"""Classes of the kinds there were before MachineClass: who names one, and its object as stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

import msgspec
import orjson

from mcm.api.machine import GROUP, VERSION, ClassSpec, Machine
from mcm.api.meta import ApiStruct, JSONObject, ObjectMeta, Resource
from mcm.api.names import (
    ANNOTATION_MIGRATED,
    KIND_MACHINE_CLASS,
    MACHINE_FINALIZER,
    MIGRATED_VALUE_PREFIX,
)
from mcm.client.requests import Call, item_path
from mcm.client.transport import Response
from mcm.client.verbs import ObjectReader
from mcm.controllers.preconditions import for_this_version

_KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")


class _Stored(ApiStruct, frozen=True, kw_only=True):
    """What all of these kinds have in common; the rest is the provider's."""

    metadata: ObjectMeta


@final
@dataclass(frozen=True, slots=True)
class OlderClass:
    """The name of one such class."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def class_spec(self) -> ClassSpec:
        return ClassSpec(api_group=GROUP, kind=self.kind, name=self.name)

    @property
    def resource(self) -> Resource[_Stored]:
        """Where the API server has it, if that serves its kind: plurals follow a rule there."""
        singular = self.kind.lower()
        plural = f"{singular}es" if singular.endswith("s") else f"{singular}s"
        return Resource(GROUP, VERSION, plural, self.kind, _Stored)

    def is_named_by(self, class_: ClassSpec) -> bool:
        return (class_.kind, class_.name) == (self.kind, self.name)


def older_class_of(machine: Machine) -> OlderClass | None:
    """Return the class of an older kind that ``machine`` names; None if it names none such."""
    class_ = machine.spec.class_
    if class_.kind == KIND_MACHINE_CLASS or not _KIND.fullmatch(class_.kind) or not class_.name:
        return None
    if class_.api_group not in ("", GROUP):
        return None
    return OlderClass(machine.metadata.namespace, class_.kind, class_.name)


async def read(client: ObjectReader, older: OlderClass) -> JSONObject:
    """Return the whole object. Raises what the client does, NotFound if there is no such kind."""
    path = item_path(older.resource, older.name, older.namespace)
    return await client.perform(Call("GET", "GET", path), _parsed)


def metadata_of(stored: JSONObject) -> ObjectMeta:
    """Return the metadata of what was read."""
    return msgspec.convert(stored, _Stored).metadata


def migrated_patch(older: OlderClass, meta: ObjectMeta) -> JSONObject | None:
    """Mark it as replaced, and let go of it: nobody uses it any more. None if that is done."""
    value = f"{MIGRATED_VALUE_PREFIX}{older.kind}"
    kept = [finalizer for finalizer in meta.finalizers if finalizer != MACHINE_FINALIZER]
    if meta.annotations.get(ANNOTATION_MIGRATED) and len(kept) == len(meta.finalizers):
        return None
    change = {"annotations": {ANNOTATION_MIGRATED: value}, "finalizers": kept}
    return for_this_version(meta, {"metadata": change})


def _parsed(response: Response) -> JSONObject:
    parsed = orjson.loads(response.body)
    return parsed if isinstance(parsed, dict) else {}
