"""``mcm uncordon``: undoes what ``mcm drain`` did, and nothing that anybody else did."""

from __future__ import annotations

import json

import orjson
import pytest

from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD, ANNOTATION_DRAINED_BY
from mcm.client.transport import Response
from mcm.node_commands.uncordon import cordoned_by
from tests.unit.node_commands.shell import Shell, machine, node

MARK = {"by": "alice@laptop", "since": "2026-05-01T12:00:00Z", "cordoned": True}


def marked(**changes: object) -> dict[str, object]:
    annotations = {ANNOTATION_DRAINED_BY: json.dumps({**MARK, **changes})}
    return {"metadata": {"annotations": {**annotations, ANNOTATION_DRAIN_RECORD: "{}"}}}


@pytest.fixture
def drained(shell: Shell) -> Shell:
    """A Node that ``mcm drain`` has cordoned."""
    shell.apply([node(unschedulable=True)])
    shell.patch_node(marked())
    return shell


def test_our_cordon_is_lifted_once(drained: Shell) -> None:
    assert drained.succeeds("uncordon", "node-1") == "node/node-1 uncordoned\n"
    after = drained.node()
    assert not after.spec.unschedulable and after.metadata.annotations == {}
    assert drained.succeeds("uncordon", "node/node-1") == "node/node-1 already uncordoned\n"


def test_a_cordon_that_was_there_before_stays(shell: Shell) -> None:
    shell.apply([node(unschedulable=True)])
    shell.patch_node(marked(cordoned=False))
    said = shell.succeeds("uncordon", "node-1")
    assert "record was removed; it stays cordoned" in said and "kubectl uncordon" in said
    after = shell.node()
    assert after.spec.unschedulable and after.metadata.annotations == {}
    shell.transport.asked.clear()
    assert "stays cordoned" in shell.succeeds("uncordon", "node-1")
    assert {method for method, _ in shell.transport.asked} == {"GET"}


def test_who_cordoned_is_read_from_the_managed_fields() -> None:
    fields: JSONObject = {"f:spec": {"f:unschedulable": {}}}
    managed = [{"manager": "kubelet", "fieldsV1": {"f:status": {}}},
               {"manager": "kubectl-cordon", "fieldsV1": fields}]  # fmt: skip
    body = orjson.dumps({"metadata": {"managedFields": managed}})
    assert cordoned_by(body) == "by kubectl-cordon"


@pytest.mark.parametrize("body", [b"{}", b"[]", b"", b'{"metadata":{"managedFields":[{}]}}'])
def test_who_cordoned_may_be_unknown(body: bytes) -> None:
    assert cordoned_by(body) == "but not by mcm"


def test_the_node_of_a_machine_may_be_named_by_it(drained: Shell) -> None:
    drained.apply([machine()])
    assert drained.succeeds("uncordon", "mc/m-1") == "node/node-1 uncordoned\n"


def test_a_machine_without_a_node_is_told(shell: Shell) -> None:
    shell.apply([machine(on="")])
    assert shell.fails("uncordon", "machine/m-1") == "mcm: machine ns/m-1 has no node\n"


def test_what_the_deletion_of_the_machine_cordoned_stays(drained: Shell) -> None:
    drained.apply([machine(finalizers=["x/y"])])
    drained.delete_machine()
    assert "is being deleted" in drained.fails("uncordon", "node-1")
    assert drained.node().spec.unschedulable


def test_a_node_that_says_it_goes_stays_cordoned_where_machines_are_elsewhere(
    drained: Shell,
) -> None:
    condition = {"type": "Terminating", "status": "True"}
    drained.patch_node({"status": {"conditions": [condition]}}, subresource="status")
    assert "Terminating" in drained.fails("uncordon", "node-1")


def test_a_cordon_for_an_update_in_place_stays(drained: Shell) -> None:
    key = "node.machine.sapcloud.io/cordoned-by-mcm"
    drained.patch_node({"metadata": {"annotations": {key: "in-place-update"}}})
    assert "update in place" in drained.fails("uncordon", "node-1")
    drained.patch_node({"metadata": {"annotations": {key: None}}})
    condition = {"type": "InPlaceUpdate", "status": "True", "reason": "ReadyForUpdate"}
    drained.patch_node({"status": {"conditions": [condition]}}, subresource="status")
    assert "updated in place" in drained.fails("uncordon", "node-1")
    assert drained.node().spec.unschedulable


def test_who_may_not_read_machines_uncordons_all_the_same(drained: Shell) -> None:
    refusal = orjson.dumps({"kind": "Status", "reason": "Forbidden", "code": 403})
    drained.transport.refusals["/machines"] = Response(403, {}, refusal)
    assert drained.succeeds("uncordon", "node-1") == "node/node-1 uncordoned\n"


def test_an_unknown_node_is_one_line(shell: Shell) -> None:
    assert 'nodes "node-1" not found' in shell.fails("uncordon", "node-1")


def test_what_is_not_allowed_names_the_verb(drained: Shell) -> None:
    message = 'nodes "node-1" is forbidden: User "bob" cannot patch resource "nodes"'
    body = orjson.dumps({"kind": "Status", "reason": "Forbidden", "message": message, "code": 403})
    drained.transport.refusals["/nodes/node-1"] = Response(403, {}, body)
    assert drained.fails("uncordon", "node-1") == f"mcm: {message}\n"


@pytest.mark.parametrize("arguments", [(), ("a", "b"), ("pod/a",), ("node-1", "--all")])
def test_bad_command_lines(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert "Usage: " in shell.fails("uncordon", *arguments, code=2)
    assert shell.transport.asked == []
