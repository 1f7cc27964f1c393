"""States of a machine that the Go original can leave and that no recording shows, by its literals.

Updates in place and preservations have tables of their own, beside their other tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from mcm.api.core import NODES, SECRETS
from mcm.api.machine import MACHINE_CLASSES, MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import (
    MACHINE_FINALIZER,
    NODE_FINALIZER,
)
from mcm.client.requests import PatchType
from tests.thoroughness import part_of
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench
from tests.unit.machine.takeover.actors import Kubelets

GROUP = "pool"
ERROR = "machine codes error: code = [Internal] message = [no luck]"
QUOTING = (
    "machine codes error: code = [Internal] message = [see: Initiate node drain; "
    "Delete Volume Attachments; Initiate machine object finalizer removal]"
)
STEP_2 = "Set machine status to termination. Now, getting VM Status"
CREATING = "Creating machine on cloud provider"


@dataclass(frozen=True)
class Left:
    """One state. ``node``: None if there is none, else how ready it is; "" if it never said."""

    phase: str = ""
    says: str = ""
    type: str = "Create"
    state: str = "Processing"
    code: str = ""
    claimed: bool = True
    identity: bool = True
    vm: bool = True
    initialized: bool = True
    knows_status: bool = True
    node: str | None = None
    node_marks: dict[str, str] = field(default_factory=dict)
    copied: str = ""
    """The readiness that stands on the machine."""
    timed: bool = True
    """Whether the status says since when."""
    waited: float = 0.0
    """Seconds that nobody led."""
    alive: bool = True
    """Whether the VM's kubelet works."""
    grouped: bool = True
    """Whether a set owns it."""
    deleted: bool = False
    node_deleted: bool = False
    token: bool = False
    then: str = "Running"
    made: int = 0
    within: float = 60.0


def creation(says: str, **left: object) -> Left:
    return Left(says=says, **left)  # type: ignore[arg-type]


def crashed(says: str, **left: object) -> Left:
    known = {"phase": "CrashLoopBackOff", "state": "Failed", "code": "Internal", **left}
    return Left(says=says, **known)  # type: ignore[arg-type]


def nothing_made(**left: object) -> dict[str, object]:
    return {"identity": False, "vm": False, "made": 1, **left}


def joined(phase: str, says: str, **left: object) -> Left:
    known = {"type": "HealthCheck", "node": "True", "copied": "True", **left}
    return Left(phase=phase, says=says, **known)  # type: ignore[arg-type]


UNHEALTHY = "Machine m is unhealthy - changing MachinePhase to Unknown. Node conditions: [...]"
MISSING = "Node object went missing. Machine m is unhealthy - changing MachinePhase to Unknown"
GIVEN_UP = (
    "Machine m health checks failing since last 10m0s minutes. "
    "Updating machine phase to Failed. Node Conditions: [...]"
)
LATE = "Machine m failed to join the cluster in 20m0s minutes."
PROVIDER = f"Cloud provider message - {ERROR}"
INITIALIZE = f"Provider error: {ERROR}. Initialize VM Instance"
FROZEN = "Machine Health Timeout was reset due to APIServer being unreachable"
STAYS_BAD = {"alive": False, "node": "Unknown", "copied": "Unknown"}

CREATION = {
    "7.1 nothing yet": creation("", **nothing_made(claimed=False)),
    "7.1 the finalizer": creation("", **nothing_made()),
    "8 the token": creation("", **nothing_made(token=True)),
    "7.2e VM made, nothing written": creation("", identity=False),
    "7.2e VM made, not initialised": creation("", identity=False, initialized=False),
    "7.2h identity, not initialised": creation("", initialized=False),
    "7.2h identity, status unknowable": creation("", initialized=False, knows_status=False),
    "7.2h identity": creation(""),
    "7.2h identity, and the Node is ready": creation("", node="True"),
    "4.3 creation failed": crashed(PROVIDER, **nothing_made()),
    "4.3 quota": crashed(PROVIDER, **nothing_made(code="ResourceExhausted")),
    "4.3 creation failed, a VM is there all the same": crashed(PROVIDER, identity=False),
    "4.3 status failed": crashed(PROVIDER),
    "4.3 initialisation failed": crashed(INITIALIZE, initialized=False),
    "4.3 initialisation failed, Node ready": crashed(INITIALIZE, initialized=False, node="True"),
    "9.3 failed without VM, of a set": crashed(
        PROVIDER, phase="Failed", **nothing_made(then="Failed", made=0)
    ),
    "9.3 failed without VM, on its own": crashed(
        PROVIDER, phase="Failed", grouped=False, **nothing_made()
    ),
    "9.3 failed uninitialised, of a set": crashed(
        INITIALIZE, phase="Failed", initialized=False, node="True", then="Failed"
    ),
    "9.3 failed uninitialised, on its own": crashed(
        INITIALIZE, phase="Failed", initialized=False, node="True", grouped=False
    ),
    "7.2f stale node, VM deleted": crashed(
        "VM using old node obj", phase="Failed", code="", **nothing_made(then="Failed", made=0)
    ),
    "7.2f stale node, VM left": crashed(
        "VM using old node obj", phase="Failed", code="", identity=False, then="Failed"
    ),
    "7.2k Pending": creation(CREATING, phase="Pending"),
    "9.2 Pending, a Node without conditions": creation(CREATING, phase="Pending", node=""),
    "9.2 Pending, not ready": creation(CREATING, phase="Pending", node="False", copied="False"),
    "9.2 Pending, ready": creation(CREATING, phase="Pending", node="True"),
    "9.4 Pending, never joins": creation(
        CREATING, phase="Pending", alive=False, then="Failed", within=1205
    ),
    "9.4 Pending, too late meanwhile": creation(
        CREATING, phase="Pending", alive=False, waited=1800, then="Failed", within=10
    ),
}

HEALTH = {
    "9.3 Running": joined("Running", "Machine m successfully joined the cluster in 7s"),
    "9.3 Running, unhealthy meanwhile": joined("Running", "", node="Unknown"),
    "9.3 Running, Node gone meanwhile": joined("Running", "", node=None),
    "9.3 Unknown": joined("Unknown", UNHEALTHY, copied="Unknown"),
    "9.3 Unknown, Node missing": joined("Unknown", MISSING, node=None),
    "9.4 Unknown, stays so": joined("Unknown", UNHEALTHY, then="Failed", within=620, **STAYS_BAD),
    "9.4 Unknown, never said since when": joined(
        "Unknown", UNHEALTHY, timed=False, then="Failed", within=620, **STAYS_BAD
    ),
    "9.4 Unknown, Node stays missing": joined(
        "Unknown", MISSING, node=None, alive=False, then="Failed", within=620
    ),
    "9.4 Unknown, too long meanwhile": joined(
        "Unknown", UNHEALTHY, waited=1200, then="Failed", within=620, **STAYS_BAD
    ),
    "9.3 given up, healthy again": joined("Failed", GIVEN_UP, state="Failed", copied="Unknown"),
    "9.3 given up": joined("Failed", GIVEN_UP, state="Failed", then="Failed", **STAYS_BAD),
    "9.3 joined too late": joined("Failed", LATE, type="Create", state="Failed", copied=""),
    "9.3 never joined": joined(
        "Failed", LATE, type="Create", state="Failed", node=None, alive=False, then="Failed"
    ),
    "17.2 thawed": joined("Running", FROZEN, state="Successful", copied="Unknown"),
    "17.2 thawed, still unhealthy": joined(
        "Running", FROZEN, state="Successful", node="Unknown", copied="Unknown"
    ),
    "17.3 Node marked as nobody's": joined(
        "Running", "", node_marks={"node.machine.sapcloud.io/not-managed-by-mcm": "1"}
    ),
    "16 Node being deleted": joined("Running", "", node_deleted=True, then="gone"),
}


def going(says: str, *, failed: bool = False, **left: object) -> Left:
    known = {
        "phase": "Terminating",
        "type": "Delete",
        "state": "Failed" if failed else "Processing",
        "node": "True",
        "copied": "True",
        "deleted": True,
        "then": "gone",
        **left,
    }
    return Left(says=says, **known)  # type: ignore[arg-type]


def vm_gone(says: str, *, failed: bool = False) -> Left:
    return going(says, failed=failed, vm=False, alive=False)


def all_gone(says: str) -> Left:
    return going(says, vm=False, alive=False, node=None)


RETRY_STATUS = "Error occurred with decoding machine error status while getting VM status, "
NO_NODE = 'Label "node" not present on machine "m", continuing deletion flow. '
REMOVE = "Initiate machine object finalizer removal"
DELETION = {
    f"12 deleted, {phase or 'no phase'}": going(says, phase=phase, type=kind)
    for phase, says, kind in [
        ("", "", ""),
        ("Pending", CREATING, "Create"),
        ("CrashLoopBackOff", PROVIDER, "Create"),
        ("Running", "Machine m successfully joined the cluster in 7s", "Create"),
        ("Unknown", UNHEALTHY, "HealthCheck"),
        ("Failed", GIVEN_UP, "HealthCheck"),
        ("InPlaceUpdating", "Machine m is undergoing an in-place update", "InPlaceUpdate"),
        ("InPlaceUpdateFailed", "Machine m failed to update dependencies: x", "InPlaceUpdate"),
    ]
} | {
    "7.1 deleted before anything was made": going(
        "", phase="", vm=False, identity=False, node=None
    ),
    "7.2e deleted as the VM was made": going("", phase="", identity=False, node=None),
    "12 by its set": going("Deleting machine from cloud provider"),
    "12 step 1": going(STEP_2),
    "12 step 1, nothing made": going(STEP_2, vm=False, identity=False, node=None),
    "12 step 1, VM without identity": going(STEP_2, identity=False, node=None),
    "12 step 2, status with retry": going(
        f"{RETRY_STATUS}aborting with retry. {STEP_2}", failed=True, identity=False
    ),
    "12 step 2, status without retry": going(
        f"{RETRY_STATUS}aborting without retry. machine code: {QUOTING} {STEP_2}",
        failed=True,
        identity=False,
    ),
    "12 step 2": going("Initiate node drain"),
    "12 step 2, VM not found": going(
        "VM was not found at provider. Moving forward to node drain. Initiate node drain",
        vm=False,
        alive=False,
        identity=False,
        node=None,
    ),
    "12 step 2, VM not initialised": going(
        "VM instance was not initialized. Moving forward to node drain. Initiate node drain",
        initialized=False,
        node=None,
    ),
    "12 step 3, no label": going(
        "Skipping drain as nodeName is not a valid one for machine. Initiate VM deletion",
        identity=False,
        node=None,
    ),
    "12 step 3, no condition": going(
        "Drain failed due to failure in update of node conditions - x. "
        "Will retry in next sync. Initiate node drain",
        failed=True,
    ),
    "12 step 3, failed": going(
        "Drain failed due to - x. Will retry in next sync. Initiate node drain", failed=True
    ),
    "12 step 3, failed, quoting": going(
        f"Drain failed due to - {QUOTING}. Will retry in next sync. Initiate node drain",
        failed=True,
    ),
    "12 step 3, failed but forced": going(
        "Drain failed due to - x. However, since it's a force deletion shall continue deletion of "
        "VM. Delete Volume Attachments"
    ),
    "12 step 3": going("Drain successful. Initiate VM deletion"),
    "12 step 3, forced": going("Force Drain successful. Delete Volume Attachments"),
    "12 step 4, no Node": going(
        "Skipping deleteNodeVolAttachments due to - x. Moving to VM Deletion. Initiate VM deletion",
        node=None,
        alive=False,
    ),
    "12 step 4, detached": going(
        "Node Volumes for node: node-m are already detached. Moving to VM Deletion. "
        "Initiate VM deletion"
    ),
    "12 step 4": going(
        "No Live VolumeAttachments for node: node-m. Moving to VM Deletion. Initiate VM deletion"
    ),
    "12 step 5, to be retried": going(
        f"VM deletion failed due to - {ERROR}. However, will re-try in the next resync. "
        "Initiate VM deletion",
        failed=True,
    ),
    "12 step 5, aborted, quoting": going(
        f"VM deletion failed due to - {QUOTING}. Aborting operation. Initiate VM deletion",
        failed=True,
    ),
    "12 step 5, not decodable": going(
        "Error occurred while decoding machine error: x. Initiate VM deletion", failed=True
    ),
    "12 step 5": vm_gone("VM deletion was successful. Initiate node object deletion"),
    "12 step 5, no VM": vm_gone(
        "VM not found. Continuing deletion flow. Initiate node object deletion"
    ),
    "12 step 6, unread": vm_gone(
        'Retrieval of Node Object "node-m" failed due to error: x, Retrying. '
        "Initiate node object deletion",
        failed=True,
    ),
    "12 step 6, finalizer": vm_gone(
        'Removal of finalizers from Node Object "node-m" failed due to error: x, Retrying. '
        "Initiate node object deletion",
        failed=True,
    ),
    "12 step 6, failed": vm_gone(
        'Deletion of Node Object "node-m" failed due to error: x. Initiate node object deletion',
        failed=True,
    ),
    "12 step 6, no label": all_gone(f"{NO_NODE}{REMOVE}"),
    "12 step 6, no Node": all_gone(
        f'No node object found for "node-m", continuing deletion flow. {REMOVE}'
    ),
    "12 step 6": all_gone(f'Deletion of Node Object "node-m" is successful. {REMOVE}'),
}

LEFT = CREATION | HEALTH | DELETION


def _some_of(states: Mapping[str, Left]) -> list[object]:
    chosen = part_of(tuple(states.items()), one_in=3)
    return [pytest.param(left, id=name) for name, left in chosen]


@pytest.mark.parametrize("left", _some_of(LEFT))
def test_what_was_begun_is_finished(left: Left) -> None:
    @on_bench
    async def main() -> None:
        async with bench(started=False) as b:
            await put(b, left)
            kubelets = asyncio.create_task(Kubelets(b).run() if left.alive else forever())
            await b.clock.sleep(left.waited)
            await b.start()
            try:
                await until(b, left)
                await b.settle(15)
            finally:
                kubelets.cancel()
            assert b.driver.made == left.made
            assert left.then != "Running" or not b.driver.uninitialized
            assert len(b.written("machines", "m")) <= 8
            assert len(b.written("nodes", "node-m")) <= 6
            if left.then == "Running":
                await assert_at_rest(b)
            if left.then == "Failed":
                await b.settle(60)
                assert (await b.machine()).phase == "Failed"
            if left.then != "gone":
                await b.delete_machine()
                await b.until_gone(within=120)
            await b.settle(5)
            assert not b.driver.vms
            assert b.driver.made == left.made
            assert not await b.exists(NODES, "node-m")
            assert [t for t in tokens(b) if t != THEIR_TOKEN] == []

    main()


async def assert_at_rest(b: Bench) -> None:
    machine, node = await b.machine(), await b.node()
    assert machine.node_name == "node-m"
    assert machine.spec.provider_id == b.driver.vms["m"]
    assert "node.machine.sapcloud.io/not-managed-by-mcm" not in node.metadata.annotations
    assert NODE_FINALIZER in node.metadata.finalizers
    b.writes.clear()
    await b.settle(1500)
    assert b.writes == []
    assert (await b.machine()).phase == "Running"


async def until(b: Bench, left: Left) -> None:
    if left.then == "gone":
        await b.until_gone(within=left.within)
    else:
        await b.until_phase(left.then, within=left.within)


async def forever() -> None:
    await asyncio.Event().wait()


THEIR_TOKEN = "bootstrap-token-367370"


def tokens(b: Bench) -> list[str]:
    names = [str(o["metadata"]["name"]) for o in b.objects(SECRETS)]  # type: ignore[index]
    return [name for name in names if name.startswith("bootstrap-token-")]


# ---- putting it there ----------------------------------------------------------------------------


async def put(b: Bench, left: Left) -> None:
    await b.make_class()
    finalizers: JSONObject = {"metadata": {"finalizers": [MACHINE_FINALIZER]}}
    await b.client.patch(MACHINE_CLASSES, "c", finalizers, namespace=NAMESPACE)
    b.driver.knows_status = left.knows_status
    if left.vm:
        b.driver.vms["m"] = "cloud:///m-1"
    if not left.initialized:
        b.driver.uninitialized.add("m")
    await b.make_machine(group=GROUP if left.grouped else "")
    await b.client.patch(MACHINES, "m", _metadata(left), namespace=NAMESPACE)
    await b.client.patch(
        MACHINES, "m", {"status": _status(b, left)}, namespace=NAMESPACE, subresource="status"
    )
    if left.node is not None:
        await _put_node(b, left)
    if left.token:
        await _put_token(b)
    if left.deleted:
        await b.delete_machine()
    b.writes.clear()


def _metadata(left: Left) -> JSONObject:
    metadata: JSONObject = {"finalizers": [MACHINE_FINALIZER] if left.claimed else []}
    patch: JSONObject = {"metadata": metadata}
    if left.identity:
        metadata["labels"] = {"node": "node-m"}
        metadata["annotations"] = {"machinepriority.machine.sapcloud.io": "3"}
        patch["spec"] = {"providerID": "cloud:///m-1"}
    return patch


def _status(b: Bench, left: Left) -> JSONObject:
    now = b.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    current: JSONObject = {"phase": left.phase} if left.phase else {}
    if left.timed and left.phase:
        current["lastUpdateTime"] = now
    if left.phase == "Pending":
        current["timeoutActive"] = True
    status: JSONObject = {"currentStatus": current}
    if left.says:
        status["lastOperation"] = {
            "description": left.says,
            "type": left.type,
            "state": left.state,
            "lastUpdateTime": now,
            **({"errorCode": left.code} if left.code else {}),
        }
    if left.copied:
        status["conditions"] = [_ready(left.copied, now)]
    return status


def _ready(status: str, now: str) -> JSONObject:
    return {
        "type": "Ready",
        "status": status,
        "reason": "Kubelet",
        "lastTransitionTime": now,
        "lastHeartbeatTime": now,
    }


async def _put_node(b: Bench, left: Left) -> None:
    """With what the original writes on one: its finalizer, its label, its marks."""
    body: JSONObject = {
        "metadata": {
            "name": "node-m",
            "finalizers": [NODE_FINALIZER],
            "labels": {"node.gardener.cloud/machine-name": "m"},
            "annotations": dict(left.node_marks),
        },
        "spec": {"providerID": "cloud:///m-1"},
    }
    await b.client.create(NODES, body)
    if left.node:
        now = b.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        patch: JSONObject = {"status": {"conditions": [_ready(left.node, now)]}}
        await b.client.patch(
            NODES, "node-m", patch, subresource="status", patch_type=PatchType.STRATEGIC
        )
    if left.node_deleted:
        await b.client.delete(NODES, "node-m")


async def _put_token(b: Bench) -> None:
    body: JSONObject = {
        "metadata": {"name": THEIR_TOKEN, "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "data": {
            "description": "QSBib290c3RyYXAgdG9rZW4=",
            "token-id": "MzY3NDc4",
            "token-secret": "dzBybjB5YTJpODh4YXNnMw==",
        },
    }
    await b.client.create(SECRETS, body, namespace="kube-system")


# ---- without a target cluster --------------------------------------------------------------------

NO_TARGET = "Running without target cluster, skipping node drain and volume attachment deletion. "
ALONE = {
    "7.2h identity": creation("", then="Available"),
    "7.2h identity, not initialised": creation("", initialized=False, then="Available"),
    "7.2k' Available": creation(
        "Created machine on cloud provider", phase="Available", state="Successful", then="Available"
    ),
    "12 step 1": going(STEP_2, node=None, copied=""),
    "12 step 2": going(f"{NO_TARGET}Initiate VM deletion", node=None, copied=""),
    "12 step 5": going(
        "VM deletion was successful. Initiate node object deletion", vm=False, node=None, copied=""
    ),
    "12 step 6": going(f"{NO_NODE}{REMOVE}", vm=False, node=None, copied=""),
}


@pytest.mark.parametrize("left", _some_of(ALONE))
def test_machines_that_join_no_cluster_are_finished_too(left: Left) -> None:
    @on_bench
    async def main() -> None:
        async with bench(started=False, has_target=False) as b:
            await put(b, left)
            await b.client.patch(
                MACHINES, "m", {"metadata": {"labels": {"node": None}}}, namespace=NAMESPACE
            )
            await b.start()
            await until(b, left)
            if left.then != "gone":
                await b.settle(1500)
                assert (await b.machine()).phase == left.then
                assert not b.driver.uninitialized
                await b.delete_machine()
                await b.until_gone()
            assert b.driver.made == 0
            assert not b.driver.vms

    main()
