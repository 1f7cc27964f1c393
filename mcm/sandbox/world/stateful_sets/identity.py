"""What a number of a StatefulSet stands for: a pod's name and labels, and its claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from mcm.api.meta import JSONObject
from mcm.sandbox.world.daemon_placement import LABEL_HASH
from mcm.sandbox.world.kinds import Pod, PodTemplate
from mcm.sandbox.world.owned_pods import pod_from_template
from mcm.sandbox.world.stateful_sets.kinds import STATEFUL_SETS, StatefulSet

LABEL_NAME = "statefulset.kubernetes.io/pod-name"
LABEL_INDEX = "apps.kubernetes.io/pod-index"
_NUMBERED = re.compile(r"(?P<owner>.+)-(?P<ordinal>0|[1-9]\d{0,9})", re.ASCII)


def owner_of(pod_name: str) -> str:
    """Return the name of the set that a pod so called would be of; empty if of none."""
    match = _NUMBERED.fullmatch(pod_name)
    return match["owner"] if match else ""


def by_ordinal(stateful_set: StatefulSet, pods: Iterable[Pod]) -> dict[int, Pod]:
    """Number the set's pods; what bears another's name is left out."""
    found: dict[int, Pod] = {}
    for pod in pods:
        match = _NUMBERED.fullmatch(pod.metadata.name)
        if match and match["owner"] == stateful_set.metadata.name:
            found[int(match["ordinal"])] = pod
    return found


def revision_of(pod: Pod) -> str:
    return pod.metadata.labels.get(LABEL_HASH, "")


def pod_manifest(
    stateful_set: StatefulSet, ordinal: int, *, revision: str, template: JSONObject
) -> JSONObject:
    name = _pod_name(stateful_set, ordinal)
    return pod_from_template(
        STATEFUL_SETS,
        stateful_set,
        template,
        name=name,
        labels={LABEL_NAME: name, LABEL_INDEX: str(ordinal), LABEL_HASH: revision},
        spec={
            "hostname": name,
            "subdomain": stateful_set.spec.service_name,
            "volumes": _volumes(stateful_set, ordinal, PodTemplate.read(template).spec),
        },
    )


def claim_manifests(stateful_set: StatefulSet, ordinal: int) -> Mapping[str, JSONObject]:
    """Return the claims of a pod, by name. The set's selector finds them, too."""
    selector = stateful_set.spec.selector
    selected = selector.match_labels if selector is not None else {}
    found: dict[str, JSONObject] = {}
    for template in stateful_set.spec.volume_claim_templates:
        meta = _members(template, "metadata")
        name = _claim_name(template, _pod_name(stateful_set, ordinal))
        labels = {**_members(meta, "labels"), **selected}
        spec = _members(template, "spec")
        found[name] = {"metadata": {**meta, "name": name, "labels": labels}, "spec": spec}
    return found


def _volumes(stateful_set: StatefulSet, ordinal: int, spec: JSONObject) -> list[object]:
    """Return the template's volumes, those of the claims in the place of any of their name."""
    pod_name = _pod_name(stateful_set, ordinal)
    claimed: dict[object, object] = {
        _members(t, "metadata").get("name"): {"claimName": _claim_name(t, pod_name)}
        for t in stateful_set.spec.volume_claim_templates
    }
    own = msgspec.convert(spec.get("volumes") or [], list[JSONObject])
    kept: list[object] = [volume for volume in own if volume.get("name") not in claimed]
    return kept + [{"name": n, "persistentVolumeClaim": claim} for n, claim in claimed.items()]


def _pod_name(stateful_set: StatefulSet, ordinal: int) -> str:
    return f"{stateful_set.metadata.name}-{ordinal}"


def _claim_name(template: JSONObject, pod_name: str) -> str:
    return f"{_members(template, 'metadata').get('name', '')}-{pod_name}"


def _members(obj: JSONObject, name: str) -> JSONObject:
    value = obj.get(name)
    return value if isinstance(value, dict) else {}
