from __future__ import annotations

import pytest

from mcm.api import names
from mcm.api.labels import is_label_key, is_label_value

_PUBLIC = {name: value for name, value in vars(names).items() if name.isupper()}
# What other programs know by these names; written out once more, so that no edit goes unnoticed.
_PINNED = {
    "MACHINE_FINALIZER": "machine.sapcloud.io/machine-controller-manager",
    "SECRET_FINALIZER": "machine.sapcloud.io/machine-controller",
    "NODE_FINALIZER": "node.machine.sapcloud.io/machine-controller",
    "LABEL_NODE": "node",
    "LABEL_NAME": "name",
    "LABEL_FORCE_DELETION": "force-deletion",
    "LABEL_FORCE_DRAIN": "force-drain",
    "LABEL_MACHINE_TEMPLATE_HASH": "machine-template-hash",
    "LABEL_FREEZE": "freeze",
    "LABEL_SCALE_UP_DISABLED": "node.machine.sapcloud.io/scale-up-disabled",
    "LABEL_CANDIDATE_FOR_UPDATE": "node.machine.sapcloud.io/candidate-for-update",
    "LABEL_SELECTED_FOR_UPDATE": "node.machine.sapcloud.io/selected-for-update",
    "LABEL_UPDATE_RESULT": "node.machine.sapcloud.io/update-result",
    "LABEL_NODE_MACHINE_NAME": "node.gardener.cloud/machine-name",
    "ANNOTATION_LAST_APPLIED_PROVIDER_SPEC": "last-applied-providerspec",
    "ANNOTATION_IN_FLIGHT_PROVIDER_SPECS": "inflight-providerspecs",
    "ANNOTATION_PRIORITY": "machinepriority.machine.sapcloud.io",
    "ANNOTATION_REVISION": "deployment.kubernetes.io/revision",
    "ANNOTATION_REVISION_HISTORY": "deployment.kubernetes.io/revision-history",
    "ANNOTATION_DESIRED_REPLICAS": "deployment.kubernetes.io/desired-replicas",
    "ANNOTATION_MAX_REPLICAS": "deployment.kubernetes.io/max-replicas",
    "ANNOTATION_PREFER_NO_SCHEDULE": "deployment.machine.sapcloud.io/prefer-no-schedule",
    "ANNOTATION_UNFREEZE": "safety.machine.sapcloud.io/unfreeze",
    "ANNOTATION_LAST_APPLIED_ALT": "node.machine.sapcloud.io/last-applied-anno-labels-taints",
    "ANNOTATION_LAST_APPLIED_VIRTUAL_CAPACITY": (
        "node.machine.sapcloud.io/last-applied-virtual-capacity"
    ),
    "ANNOTATION_NOT_MANAGED_BY_MCM": "node.machine.sapcloud.io/not-managed-by-mcm",
    "ANNOTATION_TRIGGER_DELETION": "node.machine.sapcloud.io/trigger-deletion-by-mcm",
    "ANNOTATION_MARKED_FOR_DELETION": "machine.sapcloud.io/marked-for-deletion-time",
    "ANNOTATION_REPLICA_CHANGE_BY_SCALER": (
        "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time"
    ),
    "ANNOTATION_EFFECTIVE_CREATION_TIMEOUT": (
        "node.machine.sapcloud.io/effective-creation-timeout"
    ),
    "ANNOTATION_MACHINE_JOIN_DURATION": "node.machine.sapcloud.io/machine-join-duration",
    "ANNOTATION_UPDATE_FAILED_REASON": "node.machine.sapcloud.io/update-failed-reason",
    "ANNOTATION_PRESERVE": "node.machine.sapcloud.io/preserve",
    "ANNOTATION_LAST_APPLIED_PRESERVE": (
        "node.machine.sapcloud.io/last-applied-node-preserve-value"
    ),
    "ANNOTATION_SCALE_DOWN_DISABLED": "cluster-autoscaler.kubernetes.io/scale-down-disabled",
    "ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM": (
        "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm"
    ),
    "ANNOTATION_KUBECTL_LAST_APPLIED": "kubectl.kubernetes.io/last-applied-configuration",
    "TAINT_PREFER_NO_SCHEDULE": "deployment.machine.sapcloud.io/prefer-no-schedule",
    "TAINT_CRITICAL_COMPONENTS_NOT_READY": "node.gardener.cloud/critical-components-not-ready",
    "TAINT_PRESERVED": "node.machine.sapcloud.io/preserved",
}


@pytest.mark.parametrize("name", sorted(_PINNED))
def test_a_name_of_the_interface_stays_as_it_is(name: str) -> None:
    assert _PUBLIC[name] == _PINNED[name]


@pytest.mark.parametrize(
    "name", [n for n in _PUBLIC if n.startswith(("LABEL_", "ANNOTATION_", "TAINT_"))]
)
def test_keys_have_the_form_the_api_server_demands(name: str) -> None:
    if name != "LABEL_VALUE_TRUE":
        assert is_label_key(_PUBLIC[name])


def test_label_values_have_the_form_the_api_server_demands() -> None:
    for value in (
        names.LABEL_VALUE_TRUE,
        names.UPDATE_RESULT_SUCCESSFUL,
        names.UPDATE_RESULT_FAILED,
    ):
        assert is_label_value(value)


@pytest.mark.parametrize("prefix", ["LABEL_", "ANNOTATION_", "TAINT_", "CONDITION_", "REASON_"])
def test_no_two_names_mean_the_same_thing(prefix: str) -> None:
    values = [value for name, value in _PUBLIC.items() if name.startswith(prefix)]
    assert len(values) == len(set(values)) > 0
