"""What `mcm validate` says of the live objects, and of one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcm.client.errors import ConfigurationError
from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import Objects, Seen, Unread
from mcm.validate.document import judged
from mcm.validate.finding import Document, Place
from mcm.validate.finding import Finding as Said
from mcm.validate.provider_specs import SpecCheck, check_of_provider, unchecked
from mcm.validate.relations import relations

_CHECK: Final = "object"
_MEND: Final = "kubectl edit it; until then the manager leaves it alone and says so on it"
_LOOK: Final = "see that it is meant so"


def check_objects(seen: Seen) -> Iterator[Finding]:
    check, unloaded = _provider_check(seen)
    if unloaded is not None:
        yield unloaded
    documents: list[Document] = []
    for plural, found in _kinds(seen).items():
        if isinstance(found, Unread):
            text = f"cannot be read: {found.why}"
            yield problem(_CHECK, plural, text, "see the rows on access")
            continue
        faults = 0
        for body in found:
            meta = body.get("metadata") or {}
            place = Place(f"{body.get('kind')} {meta.get('namespace')}/{meta.get('name')}")
            most = seen.options.settings.max_replicas
            document, said = judged(Document(place, body), max_replicas=most, check=check)
            documents.append(document)
            for each in said:
                faults += not each.is_warning
                yield _finding(Said(place, each, document))
        if not faults:
            yield ok(_CHECK, plural, f"{len(found)}, none that the manager would refuse")
    for relation in relations(documents, namespace=seen.options.clusters.namespace):
        yield _finding(relation)


def _finding(said: Said) -> Finding:
    field = f"{said.said.field}: " if said.said.field else ""
    text = f"{field}{said.said.detail}"
    if said.is_error:
        return problem(_CHECK, said.place.file, text, _MEND)
    return warning(_CHECK, said.place.file, text, _LOOK)


def _provider_check(seen: Seen) -> tuple[SpecCheck, Finding | None]:
    name = seen.options.provider.name
    try:
        check = check_of_provider(name, namespace=seen.options.clusters.namespace)
    except ConfigurationError as error:
        remedy = "install the provider's package, or name another one"
        return unchecked, problem("provider", "--provider", str(error), remedy)
    return check, None


def _kinds(seen: Seen) -> dict[str, Objects]:
    return {
        "machineclasses": seen.machine_classes,
        "machinedeployments": seen.machine_deployments,
        "machinesets": seen.machine_sets,
        "machines": seen.machines,
    }
