"""Whose Node is it: from labels on both sides and provider IDs, and whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node
from mcm.api.machine import Machine
from mcm.controllers.node_ownership import (
    NodeOwners,
    Ownership,
    OwnNode,
    is_stale,
    whose,
)
from mcm.informers import Store
from tests.unit.machine.objects import BORN, after, machine, node

NAME = "node.gardener.cloud/machine-name"
EARLIER = after(minutes=-5)


def says(name: str, *, provider_id: str = "", **more: object) -> Node:
    """The Node n, labelled with a machine's name."""
    labels = {NAME: name} if name else {}
    return node("n", labels=labels, provider_id=provider_id, **more)  # type: ignore[arg-type]


def owners(machines: Sequence[Machine], nodes: Sequence[Node]) -> NodeOwners:
    machine_store: Store[Machine] = Store()
    node_store: Store[Node] = Store()
    for one in machines:
        machine_store.put(one)
    for other in nodes:
        node_store.put(other)
    return NodeOwners(machine_store, node_store, "ns")


# (what, the Node, the machines, the owner, the contenders)
CASES = [
    ("a machine names it", says(""), [machine("a", node="n")], "a", ""),
    ("it names a machine", says("a"), [machine("a")], "a", ""),
    ("each names the other", says("a"), [machine("a", node="n")], "a", ""),
    ("provider IDs are equal", says("", provider_id="p"), [machine("a", provider_id="p")], "a", ""),
    ("nobody says anything", says(""), [machine("a"), machine("b", node="o")], "", ""),
    ("it names one that is gone", says("gone"), [machine("a", node="n")], "a", ""),
    ("it names one that has another", says("a"), [machine("a", node="o")], "", ""),
    (
        "it names one that has another, and one names it",
        says("a"),
        [machine("a", node="o"), machine("b", node="n")],
        "b",
        "",
    ),
    ("two name it", says(""), [machine("b", node="n"), machine("a", node="n")], "", "a b"),
    (
        "two name it; its label settles nothing",
        says("a"),
        [machine("a", node="n"), machine("b", node="n")],
        "",
        "a b",
    ),
    (
        "it names one, another names it",
        says("a"),
        [machine("a"), machine("b", node="n")],
        "",
        "a b",
    ),
    (
        "two name it; provider IDs tell whose it is",
        says("a", provider_id="p"),
        [machine("a", node="n", provider_id="q"), machine("b", node="n", provider_id="p")],
        "b",
        "",
    ),
    (
        "provider IDs that differ are no statement",
        says("", provider_id="aws:///eu-west-1a/i-1"),
        [machine("a", node="n", provider_id="aws:///eu-west-1/i-1")],
        "a",
        "",
    ),
    (
        "provider IDs that differ settle nothing",
        says("", provider_id="p"),
        [machine("a", node="n", provider_id="q"), machine("b", node="n")],
        "",
        "a b",
    ),
    ("empty provider IDs prove nothing", says(""), [machine("a"), machine("b")], "", ""),
    (
        "two record its VM",
        says("a", provider_id="p"),
        [machine("a", node="n", provider_id="p"), machine("b", provider_id="p")],
        "",
        "a b",
    ),
    (
        "one that goes leaves it to one that stays",
        says("a"),
        [machine("a", node="n", deleted=BORN), machine("b", node="n")],
        "b",
        "",
    ),
    (
        "one that goes keeps what is provably its own",
        says("a", provider_id="p"),
        [machine("a", node="n", provider_id="p", deleted=BORN), machine("b", node="n")],
        "a",
        "",
    ),
    (
        "of two that go one takes it along",
        says(""),
        [machine("b", node="n", deleted=BORN), machine("a", node="n", deleted=BORN)],
        "a",
        "",
    ),
    (
        "a former machine of the same name left it",
        says("a", born=EARLIER),
        [machine("a")],
        "",
        "",
    ),
    (
        "a machine that came later names it",
        says("", born=EARLIER),
        [machine("a", node="n")],
        "a",
        "",
    ),
]


@pytest.mark.parametrize(
    ("subject", "machines", "owner", "contenders"),
    [pytest.param(*case[1:], id=case[0]) for case in CASES],
)
def test_whose_a_node_is(
    subject: Node, machines: list[Machine], owner: str, contenders: str
) -> None:
    found = whose(subject, machines)
    assert (found.owner.metadata.name if found.owner else "") == owner
    assert " ".join(m.metadata.name for m in found.contenders) == contenders
    assert found.contested == bool(contenders)


_MACHINES = st.lists(
    st.builds(
        machine,
        st.sampled_from("abcd"),
        node=st.sampled_from(["", "n", "o"]),
        provider_id=st.sampled_from(["", "p", "q"]),
        deleted=st.sampled_from([None, BORN]),
    ),
    max_size=4,
    unique_by=lambda m: m.metadata.name,
)
_NODES = st.builds(
    says,
    st.sampled_from(["", "a", "b", "gone"]),
    provider_id=st.sampled_from(["", "p", "q"]),
    born=st.sampled_from([EARLIER, BORN]),
)


@given(_NODES, _MACHINES, st.randoms())
def test_nobodys_somebodys_or_contested_whatever_the_order(
    subject: Node, machines: list[Machine], random: object
) -> None:
    found = whose(subject, machines)
    assert not (found.owner and found.contenders)
    assert len(found.contenders) != 1
    shuffled = sorted(machines, key=lambda _: random.random())  # type: ignore[attr-defined]
    assert whose(subject, shuffled) == found


@given(_NODES, _MACHINES)
def test_the_only_one_with_the_nodes_provider_id_has_it(
    subject: Node, machines: list[Machine]
) -> None:
    same = [
        m for m in machines if m.spec.provider_id and m.spec.provider_id == subject.spec.provider_id
    ]
    if len(same) == 1:
        assert whose(subject, machines) == Ownership(same[0])


@given(_NODES, _MACHINES)
def test_it_is_settled_when_all_rivals_but_one_are_gone(
    subject: Node, machines: list[Machine]
) -> None:
    for stays in whose(subject, machines).contenders:
        rest = [m for m in machines if m not in whose(subject, machines).contenders]
        assert whose(subject, [stays, *rest]).is_of(stays)


@given(_NODES, _MACHINES)
def test_at_most_one_machine_is_told_that_a_node_is_its_own(
    subject: Node, machines: list[Machine]
) -> None:
    answers = owners(machines, [subject])
    told = [m.metadata.name for m in machines if answers.own_node(m) is not None]
    assert len(told) <= 1
    for one in machines:
        found = answers.find(one)
        assert not (found.node and found.obstacle)
        assert bool(found.obstacle) == (one.node_name == "n" and found.node is None)


# ---- what a machine is told ----------------------------------------------------------------------

A_OWN = node("o", provider_id="pa")


def test_a_machine_is_told_with_whom_it_quarrels() -> None:
    here, there = machine("a", node="n"), machine("b", node="n")
    answers = owners([here, there], [says("a")])
    assert answers.find(here) == OwnNode(named="n", rivals=("b",))
    assert answers.find(there) == OwnNode(named="n", rivals=("a",))
    assert answers.find(here).obstacle == (
        "node n is also named by machine b, and no provider ID tells whose"
    )


def test_many_rivals_are_counted() -> None:
    crowd = [machine(f"m{i}", node="n") for i in range(9)]
    obstacle = owners(crowd, [says("")]).find(crowd[0]).obstacle
    assert "machines m1, m2, m3 and 5 more" in obstacle


def test_a_wrong_label_disturbs_nobody_whose_vm_has_another_node() -> None:
    mistaken = machine("a", node="n", provider_id="pa")
    rightful = machine("b", node="n", provider_id="other form")
    answers = owners([mistaken, rightful], [says("", provider_id="pb"), A_OWN])
    assert answers.find(rightful).node == says("", provider_id="pb")
    assert answers.find(mistaken) == OwnNode(named="n", owner="b", found="o")
    assert answers.find(mistaken).obstacle == "node n is machine b's"


@pytest.mark.parametrize(
    ("subject", "nodes", "found"),
    [
        pytest.param(machine("a"), [says("a")], "n", id="no label: its Node says so"),
        pytest.param(machine("a", provider_id="pa"), [A_OWN], "o", id="no label: its VM's Node"),
        pytest.param(machine("a", node="x", provider_id="pa"), [A_OWN], "o", id="another name"),
        pytest.param(
            machine("a", node="x", phase="Running"), [says("a")], "n", id="it names none that is"
        ),
        pytest.param(machine("a", node="x", phase="Pending"), [says("a")], "", id="yet to come"),
        pytest.param(
            machine("a", node="x", phase="Running"),
            [says("a"), node("x")],
            "",
            id="a Node that is there takes proof to be the wrong one",
        ),
        pytest.param(
            machine("a", provider_id="pa"), [A_OWN, node("q", provider_id="pa")], "", id="two"
        ),
        pytest.param(machine("a"), [says("a", born=EARLIER)], "", id="of a former machine"),
        pytest.param(machine("a", node="o", provider_id="pa"), [A_OWN], "", id="as it should be"),
    ],
)
def test_a_label_that_is_missing_or_wrong_is_known(
    subject: Machine, nodes: list[Node], found: str
) -> None:
    assert owners([subject], nodes).find(subject).found == found


def test_the_node_of_a_machine_in_a_contest_over_another_is_not_nobodys() -> None:
    mistaken = machine("b", node="n", phase="Running")
    rightful = machine("a", node="n", phase="Running")
    own = node("o", labels={NAME: "b"})
    answers = owners([mistaken, rightful], [says("a"), own])
    assert answers.find(mistaken).rivals == ("a",)
    assert answers.find(rightful).rivals == ("b",)
    assert answers.of(own).is_of(mistaken)
    older = node("o", labels={NAME: "b"}, born=EARLIER)
    assert answers.of(older) == Ownership()


def test_the_machine_that_asks_counts_as_it_is_and_not_as_the_mirror_has_it() -> None:
    answers = owners([machine("a"), machine("b", node="o")], [says("")])
    assert answers.own_node(machine("a", node="n")) == says("")
    again = msgspec.structs.replace(machine("b", node="n"))
    assert not answers.find(again).contested


def test_a_machine_wakes_those_who_may_have_its_node() -> None:
    fleet = [machine("a", node="n"), machine("b", node="n"), machine("c", provider_id="p")]
    answers = owners([*fleet, machine("d", node="o")], [says("d", provider_id="p")])
    assert {m.metadata.name for m in answers.rivals(fleet[0])} == {"b", "c", "d"}
    gone = owners(fleet, [])
    assert [m.metadata.name for m in gone.rivals(fleet[0])] == ["b"]


# ---- at the creation of a VM ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, False),
        (node("m"), False),
        (node("old", provider_id="p-other"), True),
        (node("old", provider_id="p"), False),
        (node("old", labels={"node.gardener.cloud/machine-name": "m"}), False),
        (node("old", born=after(minutes=-5)), True),
        (node("old", born=after(minutes=5)), False),
        (node("old", provider_id="p-other", born=after(minutes=5)), True),
    ],
)
def test_a_node_is_stale_if_it_cannot_be_the_new_vms(found: Node | None, *, expected: bool) -> None:
    assert is_stale(found, machine("m"), "p") is expected


@pytest.mark.parametrize(
    ("claimed", "provider_id", "expected"),
    [
        pytest.param([machine("b", node="n")], "", True, id="another machine has it"),
        pytest.param([machine("b", node="n"), machine("c", node="n")], "", True, id="contested"),
        pytest.param([machine("b", node="n")], "p", False, id="but it is the new VM's"),
        pytest.param([], "", False, id="nobody has it"),
    ],
)
def test_a_node_that_others_name_is_stale_however_young(
    claimed: list[Machine], provider_id: str, *, expected: bool
) -> None:
    young = says("", provider_id=provider_id, born=after(minutes=5))
    answers = owners([machine("m"), *claimed], [young])
    assert answers.is_stale("n", machine("m"), "p") is expected
    assert not answers.is_stale("absent", machine("m"), "p")
