"""The CustomResourceDefinition objects: names, versions, subresources, printer columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import yaml

from mcm.api.crds.schema import root_schema
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource

_HEADER = "# The kinds of the machine controller manager. Made by `mcm crds`; do not edit.\n"


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    path: str
    type: str = "integer"
    description: str = ""
    wide: bool = False
    """Shown by ``kubectl get -o wide`` only."""

    def manifest(self) -> JSONObject:
        column: JSONObject = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            column["description"] = self.description
        if self.wide:
            column["priority"] = 1
        return column


@dataclass(frozen=True, slots=True)
class _Definition:
    resource: Resource[KubeObject]
    short_name: str
    columns: tuple[_Column, ...] = ()
    has_status: bool = True
    has_scale: bool = False


_AGE = _Column("Age", ".metadata.creationTimestamp", "date", "Time since the object was created.")
_FROZEN = _Column(
    "Frozen",
    ".metadata.labels.freeze",
    "string",
    "True: no machines are made, there are too many. The condition Frozen says more.",
    wide=True,
)
_DEFINITIONS = (
    _Definition(MACHINE_CLASSES, "mcc", has_status=False),
    _Definition(
        MACHINE_DEPLOYMENTS,
        "mcd",
        (
            _Column("Ready", ".status.readyReplicas", description="Machines that are ready."),
            _Column("Desired", ".spec.replicas", description="Machines there should be."),
            _Column(
                "Up-to-date",
                ".status.updatedReplicas",
                description="Machines made from the current template.",
            ),
            _Column(
                "Available",
                ".status.availableReplicas",
                description="Machines that have been ready for long enough.",
            ),
            _AGE,
            _FROZEN,
        ),
        has_scale=True,
    ),
    _Definition(
        MACHINES,
        "mc",
        (
            _Column(
                "Status",
                ".status.currentStatus.phase",
                "string",
                "The phase the machine is in.",
            ),
            _AGE,
            _Column("Node", ".metadata.labels.node", "string", "The machine's Node."),
            _Column(
                "ProviderID",
                ".spec.providerID",
                "string",
                "The machine's identity at its cloud provider.",
                wide=True,
            ),
        ),
    ),
    _Definition(
        MACHINE_SETS,
        "mcs",
        (
            _Column("Desired", ".spec.replicas", description="Machines there should be."),
            _Column("Current", ".status.replicas", description="Machines there are."),
            _Column("Ready", ".status.readyReplicas", description="Machines that are ready."),
            _AGE,
            _FROZEN,
        ),
        has_scale=True,
    ),
)
_BY_KIND: Mapping[str, _Definition] = {d.resource.kind: d for d in _DEFINITIONS}


def crd_manifests() -> list[JSONObject]:
    """Return the four CustomResourceDefinitions, ordered by name."""
    return [_manifest(definition) for definition in _DEFINITIONS]


def crd_manifest(kind: str) -> JSONObject:
    """Return the CustomResourceDefinition of one kind. Raises KeyError for any other."""
    return _manifest(_BY_KIND[kind])


def to_yaml() -> str:
    """Return :func:`crd_manifests` as a YAML stream of one document each."""
    documents = yaml.dump_all(
        crd_manifests(),
        Dumper=_PlainDumper,
        sort_keys=False,
        explicit_start=True,
        width=100,
        allow_unicode=True,
    )
    return _HEADER + documents


def _manifest(definition: _Definition) -> JSONObject:
    resource = definition.resource
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "shortNames": [definition.short_name],
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(definition)],
        },
    }


def _version(definition: _Definition) -> JSONObject:
    kind = definition.resource.type
    assert issubclass(kind, msgspec.Struct)
    version: JSONObject = {
        "name": definition.resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": root_schema(kind)},
    }
    if definition.columns:
        version["additionalPrinterColumns"] = [c.manifest() for c in definition.columns]
    if subresources := _subresources(definition):
        version["subresources"] = subresources
    return version


def _subresources(definition: _Definition) -> JSONObject:
    subresources: JSONObject = {}
    if definition.has_scale:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
        }
    if definition.has_status:
        subresources["status"] = {}
    return subresources


class _PlainDumper(yaml.SafeDumper):
    """Writes shared parts out in full: anchors would only puzzle a reader."""

    def ignore_aliases(self, data: object) -> bool:
        return True
