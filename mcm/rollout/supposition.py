"""What a plan starts from: objects of a cluster or a dump, and what is supposed to change of them.

A manifest counts as ``kubectl apply`` would apply it: what it says is set, what the last applied
one said and it says no more is removed, all else stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, cast, final

import orjson

from mcm.api.codec import DecodeError, decode_object, read_object
from mcm.api.machine import (
    GROUP,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachineSet,
)
from mcm.api.meta import JSONObject, Resource, T
from mcm.api.names import ANNOTATION_KUBECTL_LAST_APPLIED, KIND_MACHINE_CLASS
from mcm.api.patches import merge_diff, merged
from mcm.api.templates import class_of
from mcm.client.errors import ConfigurationError
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.manifest_files import documents
from mcm.rollout.changes import restart, resume, undo
from mcm.rollout.observation import observed

_NOT_YET: Final = "not made yet"


@final
@dataclass(frozen=True, slots=True)
class Namespace:
    """The objects that a plan is made of.

    ``deployment`` is as it was sent, None if there is none yet; ``others`` are all other ones.
    ``classes`` are the names of the machine classes, None if they are unknown.
    """

    deployment: JSONObject | None
    sets: Sequence[MachineSet] = ()
    machines: Sequence[Machine] = ()
    others: Sequence[MachineDeployment] = ()
    classes: Collection[str] | None = None

    def around(self) -> Sequence[DeploymentSnapshot]:
        """Return the other deployments with what is theirs."""
        return [observed(other, self.sets, self.machines) for other in self.others]

    def lacks_class_of(self, deployment: MachineDeployment) -> str:
        """Return the name of the deployment's machine class, if there is none such."""
        class_ = class_of(deployment.spec.template)
        known = self.classes is None or class_.kind != KIND_MACHINE_CLASS
        return "" if known or class_.name in (self.classes or ()) else class_.name


@final
@dataclass(frozen=True, slots=True)
class Supposition:
    """What is supposed to be written on the deployment, in this order."""

    manifest: JSONObject | None = None
    replicas: int | None = None
    class_name: str = ""
    resumed: bool = False
    revision: int | None = None
    restarted: bool = False


def supposed(found: Namespace, supposition: Supposition, now: datetime) -> DeploymentSnapshot:
    """Return how it all is once the supposed is written.

    Raises ConfigurationError if the deployment cannot be read, and :class:`.Refused`.
    """
    raw = found.deployment
    if supposition.manifest is not None:
        raw = applied(raw, supposition.manifest)
    if raw is None:
        raise ConfigurationError("there is no such MachineDeployment")
    if supposition.replicas is not None:
        raw = _merged(raw, {"spec": {"replicas": supposition.replicas}})
    if supposition.class_name:
        class_ = {"name": supposition.class_name}
        raw = _merged(raw, {"spec": {"template": {"spec": {"class": class_}}}})
    if supposition.resumed:
        raw = _merged(raw, resume(_decoded(raw)))
    if supposition.revision is not None:
        seen = observed(_decoded(raw), found.sets, found.machines)
        raw = _merged(raw, undo(seen, supposition.revision).change or {})
    if supposition.restarted:
        raw = _merged(raw, restart(_decoded(raw), now))
    return observed(_decoded(raw), found.sets, found.machines)


def applied(live: JSONObject | None, manifest: JSONObject) -> JSONObject:
    """Return what ``kubectl apply`` would make of ``live``, None if there is no such object yet."""
    manifest = {k: v for k, v in manifest.items() if k != "status"}
    if live is None:
        return _merged({"metadata": {"uid": _NOT_YET, "generation": 1}}, manifest)
    removed = merge_diff(_last_applied(live), manifest)
    return _merged(_merged(live, removed), manifest)


def _last_applied(live: JSONObject) -> JSONObject:
    metadata = live.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = (annotations or {}).get(ANNOTATION_KUBECTL_LAST_APPLIED, "{}")
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return last if isinstance(last, dict) else {}


def _merged(obj: Mapping[str, object], change: Mapping[str, object]) -> JSONObject:
    return cast("JSONObject", merged(obj, change))


def _decoded(raw: JSONObject) -> MachineDeployment:
    try:
        return decode_object(MACHINE_DEPLOYMENTS, orjson.dumps(raw))
    except (DecodeError, TypeError) as error:  # YAML has keys and values that JSON has not
        raise ConfigurationError(str(error)) from None


# ---- files ---------------------------------------------------------------------------------------


def read_manifest(paths: Iterable[Path], name: str) -> JSONObject:
    """Return the deployment called ``name`` (empty: the only one) in files as they are applied."""
    objects = _objects_in(paths)
    if strays := sorted({str(o.get("kind")) for o in objects if _kind_of(o) in _DUMPED_BESIDE}):
        raise ConfigurationError(
            f"-f holds objects of kind {' and '.join(strays)}, which nobody applies; "
            "--from plans from a dump, without a cluster"
        )
    return _chosen(objects, name, option="-f")


def read_dump(paths: Iterable[Path], name: str, namespace: str) -> Namespace:
    """Return a deployment and the sets and machines beside it, as ``kubectl get -o yaml`` wrote
    them. Without ``name`` or ``namespace`` the deployment must be the only one."""
    objects = [o for o in _objects_in(paths) if not namespace or _meta(o, "namespace") == namespace]
    deployment = _chosen(objects, name, option="--from")
    where, own = _meta(deployment, "namespace"), _meta(deployment, "name")
    beside = [o for o in objects if _meta(o, "namespace") == where]
    return Namespace(
        deployment,
        _all_of(MACHINE_SETS, beside),
        _all_of(MACHINES, beside),
        [d for d in _all_of(MACHINE_DEPLOYMENTS, beside) if d.metadata.name != own],
        [_meta(o, "name") for o in beside if _kind_of(o) == KIND_MACHINE_CLASS] or None,
    )


_DUMPED_BESIDE: Final = frozenset({MACHINE_SETS.kind, MACHINES.kind})


def _objects_in(paths: Iterable[Path]) -> list[JSONObject]:
    return [document for path in paths for document in documents(path)]


def _kind_of(obj: JSONObject) -> str:
    """Return the kind of an object of our group, empty for any other."""
    ours = str(obj.get("apiVersion", "")).partition("/")[0] == GROUP
    return str(obj.get("kind", "")) if ours else ""


def name_of(manifest: JSONObject | None) -> str:
    return _meta(manifest, "name") if manifest is not None else ""


def _meta(obj: JSONObject, field: str) -> str:
    metadata = obj.get("metadata")
    return str(metadata.get(field) or "") if isinstance(metadata, dict) else ""


def _chosen(objects: Iterable[JSONObject], name: str, *, option: str) -> JSONObject:
    deployments = [o for o in objects if _kind_of(o) == MACHINE_DEPLOYMENTS.kind]
    meant = [o for o in deployments if not name or _meta(o, "name") == name]
    if len(meant) == 1:
        return meant[0]
    called = f" {name!r}" if name else ""
    names = ", ".join(f"{_meta(o, 'namespace') or '-'}/{_meta(o, 'name')}" for o in deployments)
    raise ConfigurationError(
        f"{option}: exactly one MachineDeployment{called} is expected; there is: {names or 'none'}"
    )


def _all_of(resource: Resource[T], objects: Iterable[JSONObject]) -> tuple[T, ...]:
    found = []
    for obj in objects:
        if _kind_of(obj) != resource.kind:
            continue
        called = f"--from: {resource.kind} {_meta(obj, 'name')}"
        if not _meta(obj, "uid") and _kind_of(obj) in _DUMPED_BESIDE:
            raise ConfigurationError(f"{called} has no metadata.uid: this is no dump of a cluster")
        try:
            found.append(read_object(resource, orjson.dumps(obj)))
        except (DecodeError, TypeError) as error:
            raise ConfigurationError(f"{called}: {error}") from None
    return tuple(found)
