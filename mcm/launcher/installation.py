"""What a cluster lacks of what the manager needs, and its creation: definitions and namespace.

What exists is never changed: where it is not as this version would make it, that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final

from mcm.api.crds import crd_manifests
from mcm.api.meta import ApiStruct, JSONObject, ObjectMeta, Resource
from mcm.client.client import Client
from mcm.client.errors import AlreadyExists, ConfigurationError, Forbidden, NotFound
from mcm.clock import Clock
from mcm.prerequisites.served_kinds import ServedKind, in_words, not_served, of_definitions


class _Namespace(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta


class _Definition(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: JSONObject = {}


NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", _Namespace, namespaced=False)
DEFINITIONS: Final = Resource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    _Definition,
    namespaced=False,
)
_SERVED_WITHIN: Final = 30.0
_LOOK_AGAIN: Final = 0.2


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """``missing`` is to be created. ``differing`` are names of definitions that exist otherwise."""

    missing: tuple[JSONObject, ...]
    differing: tuple[str, ...]

    @property
    def names(self) -> Sequence[str]:
        """What is missing, as kubectl names it."""
        return [
            f"{'namespace' if each['kind'] == 'Namespace' else 'customresourcedefinition'}/"
            f"{_name(each)}"
            for each in self.missing
        ]


async def planned(client: Client, definitions: Iterable[JSONObject], namespace: str) -> Plan:
    """Ask the cluster what it has; nothing is written. A definition that exists as we want it and
    is not served yet counts as missing: somebody has just made it.

    Raises ConfigurationError for a definition that exists without the version that we need, and for
    what is being deleted.
    """
    wanted = [*crd_manifests(), *definitions]
    missing: list[JSONObject] = []
    differing: list[str] = []
    unusable: list[ServedKind] = []
    ending: list[str] = []
    for definition in wanted:
        lacking = await not_served(client, of_definitions([definition]))
        found = await _definition(client, _name(definition))
        if found is None:
            missing += [definition] if lacking else []
            continue
        is_ours = _holds(found.spec, definition["spec"])
        if found.metadata.deletion_timestamp is not None:
            ending.append(f"customresourcedefinition/{found.metadata.name}")
        elif lacking and is_ours:
            missing.append(definition)
        elif lacking:
            unusable += lacking
        elif not is_ours:
            differing.append(_name(definition))
    space = await _namespace_of(client, namespace)
    if space is not None and space.metadata.deletion_timestamp is not None:
        ending.append(f"namespace/{namespace}")
    if ending:
        raise ConfigurationError(
            f"being deleted in the cluster: {', '.join(ending)}; wait until it is gone "
            "(`kubectl get` shows the finalizers that hold it), then start again"
        )
    if unusable:
        raise ConfigurationError(
            f"the cluster defines, but does not serve {in_words(unusable)}: an older or newer "
            "version of the definition is installed, which is left as it is"
        )
    if space is None:
        missing.insert(0, _namespace(namespace))
    return Plan(tuple(missing), tuple(differing))


async def install(client: Client, plan: Plan, clock: Clock) -> None:
    """Create what is missing and return once it is served. What others made meanwhile is theirs.

    Raises ConfigurationError if it is not served in half a minute.
    """
    for each in plan.missing:
        with suppress(AlreadyExists):
            if each["kind"] == "Namespace":
                await client.create(NAMESPACES, each)
            else:
                await client.create(DEFINITIONS, each)
    kinds = of_definitions(each for each in plan.missing if each["kind"] != "Namespace")
    deadline = clock.monotonic() + _SERVED_WITHIN
    while lacking := await not_served(client, kinds):
        if clock.monotonic() >= deadline:
            raise ConfigurationError(
                f"the cluster took the definitions, but serves no {in_words(lacking)} after "
                f"{_SERVED_WITHIN:.0f} s"
            )
        await clock.sleep(_LOOK_AGAIN)


async def _definition(client: Client, name: str) -> _Definition | None:
    """Return a definition; None if there is none, or none that we may see."""
    try:
        return await client.get(DEFINITIONS, name)
    except (NotFound, Forbidden):
        return None


async def _namespace_of(client: Client, name: str) -> _Namespace | None:
    """Return the namespace; None if there is none."""
    try:
        return await client.get(NAMESPACES, name)
    except NotFound:
        return None
    except Forbidden:  # who may not look cannot make one either
        return _Namespace(metadata=ObjectMeta(name=name))


def _holds(found: object, wanted: object) -> bool:
    """Whether all that is wanted is there; servers add defaults, and leave out what is empty."""
    if found is None:
        return not wanted
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(
            _holds(found.get(key), value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(map(_holds, found, wanted))
        )
    return found == wanted


def _name(manifest: JSONObject) -> str:
    metadata = manifest["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["name"])


def _namespace(name: str) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
