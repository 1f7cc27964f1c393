"""Which Deployment owns a pod, and who else sets its replicas: read from the server, not mirrored.

Few pods ask for a successor, and a mirror of all Deployments would be for them alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.api.core import Pod
from mcm.api.meta import OwnerReference
from mcm.api.workloads import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    REPLICA_SETS,
    Deployment,
    ReplicaSet,
)
from mcm.client.errors import NotFound
from mcm.client.verbs import ObjectReader


@final
@dataclass(frozen=True, slots=True)
class NoOwner:
    """``why`` no Deployment can make a successor."""

    why: str


async def deployment_of(client: ObjectReader, pod: Pod) -> Deployment | NoOwner:
    """Read the Deployment that owns the pod's ReplicaSet. Raises KubeError."""
    reference, namespace = pod.metadata.controller_ref(), pod.metadata.namespace
    if reference is None:
        return NoOwner("no controller owns it")
    if not _is(reference, REPLICA_SETS.kind):
        return NoOwner(f"{reference.kind} {namespace}/{reference.name} owns it, no Deployment")
    try:
        replica_set: ReplicaSet = await client.get(
            REPLICA_SETS, reference.name, namespace=namespace
        )
        if replica_set.metadata.uid != reference.uid:
            return NoOwner("its ReplicaSet is gone")
        owner = replica_set.metadata.controller_ref()
        if owner is None or not _is(owner, DEPLOYMENTS.kind):
            return NoOwner(f"no Deployment owns its ReplicaSet {namespace}/{reference.name}")
        deployment: Deployment = await client.get(DEPLOYMENTS, owner.name, namespace=namespace)
    except NotFound:
        return NoOwner("its ReplicaSet or Deployment is gone")
    if deployment.metadata.uid != owner.uid:
        return NoOwner("its Deployment is gone")
    return deployment


async def is_autoscaled(client: ObjectReader, deployment: Deployment) -> bool:
    """Tell whether a HorizontalPodAutoscaler is for the Deployment. Raises KubeError."""
    meta = deployment.metadata
    token = ""
    while True:
        try:
            page = await client.list_page(
                HORIZONTAL_POD_AUTOSCALERS, namespace=meta.namespace, continue_token=token
            )
        except NotFound:
            return False  # a server that knows none
        for autoscaler in page.items:
            target = autoscaler.spec.scale_target_ref
            if target.kind == DEPLOYMENTS.kind and target.name == meta.name:
                return True
        if not (token := page.continue_token):
            return False


def _is(reference: OwnerReference, kind: str) -> bool:
    return reference.kind == kind and reference.api_version.partition("/")[0] == "apps"
