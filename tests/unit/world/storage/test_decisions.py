"""The decisions of :mod:`mcm.sandbox.world.storage`, in tables."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.world.kinds import (
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mcm.sandbox.world.storage.attachments import (
    Decision,
    Held,
    Wanted,
    attachment_name,
    decide,
    multi_attach_message,
)
from mcm.sandbox.world.storage.behaviour import Behaviour, behaviour_of, read_behaviour
from mcm.sandbox.world.storage.classes import class_manifests, default_class
from mcm.sandbox.world.storage.matching import smallest_match
from mcm.sandbox.world.storage.node_affinity import in_zone, reachable
from mcm.sandbox.world.storage.provisioning import zone_for
from mcm.sandbox.world.storage.scheduling import DEFAULT_LIMIT, volume_limit
from tests.unit.world import manifests

DRIVER = "disk.simulated.machine.sapcloud.io"
TWO: JSONObject = {"resources": {"requests": {"storage": "2Gi"}}}
MANY: JSONObject = {"accessModes": ["ReadWriteMany"]}


def a_volume(name: str = "v", spec: JSONObject | None = None) -> PersistentVolume:
    made = manifests.volume(name)
    return msgspec.convert(_with_spec(made, spec or {}), PersistentVolume)


def a_claim(spec: JSONObject | None = None) -> PersistentVolumeClaim:
    made = manifests.claim("c", storageClassName="")
    return msgspec.convert(_with_spec(made, spec or {}), PersistentVolumeClaim)


def _with_spec(manifest: JSONObject, more: JSONObject) -> JSONObject:
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    return {**manifest, "spec": {**spec, **more}}


def a_node(
    labels: dict[str, str] | None = None, *, ready: bool = True, taint: str = "", listed: str = ""
) -> Node:
    status = "True" if ready else "Unknown"
    taints = [{"key": taint, "effect": "NoExecute"}] if taint else []
    return msgspec.convert(
        {
            "metadata": {"name": "n", "labels": labels or {}},
            "spec": {"taints": taints},
            "status": {
                "conditions": [{"type": "Ready", "status": status}],
                "volumesAttached": [{"name": listed}] if listed else [],
            },
        },
        Node,
    )


# How a volume behaves ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, Behaviour(2.0, 1.0, 0, 0)),
        ({"other": "x", "attachSeconds": ""}, Behaviour(2.0, 1.0, 0, 0)),
        ({"attachSeconds": " 0.5 ", "detachSeconds": "30"}, Behaviour(0.5, 30.0, 0, 0)),
        ({"attachSeconds": "never", "detachSeconds": "0"}, Behaviour(None, 0.0, 0, 0)),
        ({"attachFailures": "3", "detachFailures": "1"}, Behaviour(2.0, 1.0, 3, 1)),
    ],
)
def test_settings_are_read(settings: dict[str, str], expected: Behaviour) -> None:
    assert read_behaviour(settings) == expected


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1e9", "5s"])
def test_seconds_that_are_none_are_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"^detachSeconds is '.*': want a number of seconds"):
        read_behaviour({"detachSeconds": text})


@pytest.mark.parametrize("text", ["-1", "1.5", "many", "²", "9" * 10])
def test_counts_that_are_none_are_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"^attachFailures is '.*': want a whole number"):
        read_behaviour({"attachFailures": text})


@given(st.dictionaries(st.sampled_from(["attachSeconds", "attachFailures", "x"]), st.text()))
def test_any_text_is_read_or_refused_as_a_value(settings: dict[str, str]) -> None:
    try:
        found = read_behaviour(settings)
    except ValueError:
        return
    assert found.attach_seconds is None or found.attach_seconds >= 0
    assert found.attach_failures >= 0


def test_a_volumes_annotations_win_over_its_attributes() -> None:
    made = manifests.volume("v", attributes={"attachSeconds": "9", "detachSeconds": "9"})
    key = "simulation.machine.sapcloud.io/attach-seconds"
    made["metadata"] = {"name": "v", "annotations": {key: "never"}}
    assert behaviour_of(msgspec.convert(made, PersistentVolume)) == Behaviour(None, 9.0)


# Which volume a claim gets -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offer", "wish", "fits"),
    [
        ({}, {}, True),
        ({"capacity": {"storage": "1Gi"}}, TWO, False),
        ({"capacity": {"storage": "2048Mi"}}, TWO, True),
        ({"accessModes": ["ReadWriteOnce"]}, MANY, False),
        ({"accessModes": ["ReadWriteMany", "ReadWriteOnce"]}, MANY, True),
        ({"storageClassName": "x"}, {}, False),
        ({"storageClassName": "x"}, {"storageClassName": "x"}, True),
        ({"volumeMode": "Block"}, {}, False),
        ({"claimRef": {"namespace": "default", "name": "c"}}, {}, False),
        ({}, {"selector": {"matchLabels": {"a": "b"}}}, False),
    ],
)
def test_a_volume_satisfies_a_claim(offer: JSONObject, wish: JSONObject, fits: bool) -> None:
    candidate = a_volume(spec=offer)
    assert smallest_match(a_claim(wish), [candidate]) == (candidate if fits else None)


def test_the_smallest_volume_in_reach_is_taken_the_first_by_name_among_equals() -> None:
    small, twin = (a_volume(n, {"capacity": {"storage": "1Gi"}}) for n in "ba")
    big = a_volume("c", {"capacity": {"storage": "5Gi"}})
    assert smallest_match(a_claim(), [big, small, twin]) == twin
    hidden = a_volume("0", _affinity({"key": "x", "operator": "Exists"}))
    assert smallest_match(a_claim(), [hidden, big], a_node()) == big
    assert smallest_match(a_claim(), [hidden, big], a_node({"x": ""})) == hidden


def test_the_newest_of_the_default_classes_counts() -> None:
    def made(name: str, day: int) -> StorageClass:
        mark = class_manifests()[0]["metadata"]
        assert isinstance(mark, dict)
        dated = {**mark, "name": name, "creationTimestamp": f"2026-01-0{day}T00:00:00Z"}
        return msgspec.convert({"metadata": dated}, StorageClass)

    older, newer = made("z", 1), made("a", 2)
    share = msgspec.convert(class_manifests()[1], StorageClass)
    assert default_class([newer, older, share]) == newer
    assert default_class([share]) is None


def test_a_volume_bound_at_once_lies_in_one_of_the_nodes_zones_that_the_class_allows() -> None:
    zone = "topology.kubernetes.io/zone"
    nodes = [a_node({zone: z}) for z in ("z1", "z2", "z3")]
    free = msgspec.convert(manifests.storage_class("x"), StorageClass)
    claims = [
        msgspec.convert({"metadata": {"name": "c", "uid": f"u{i}"}}, PersistentVolumeClaim)
        for i in range(40)
    ]
    assert {zone_for(c, free, None, nodes) for c in claims} == {"z1", "z2", "z3"}
    topologies = [{"matchLabelExpressions": [{"key": zone, "values": ["z2", "z9"]}]}]
    some = msgspec.convert(
        {**manifests.storage_class("x"), "allowedTopologies": topologies}, StorageClass
    )
    assert {zone_for(c, some, None, nodes) for c in claims} == {"z2"}
    assert zone_for(claims[0], some, nodes[0], nodes) == "z1"
    assert zone_for(claims[0], free, None, [a_node()]) == ""


# Where a volume can be reached -------------------------------------------------------------------


def _affinity(*expressions: JSONObject) -> JSONObject:
    term = {"matchExpressions": list(expressions)}
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("operator", "values", "reached"),
    [
        ("In", ["1", "7"], True),
        ("In", ["1"], False),
        ("NotIn", ["1"], True),
        ("NotIn", ["7"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["6"], True),
        ("Gt", ["7"], False),
        ("Lt", ["8"], True),
        ("Lt", ["many"], False),
        ("Gt", [], False),
        ("Like", ["7"], False),
    ],
)
def test_affinity_holds_by_its_operators(operator: str, values: list[str], reached: bool) -> None:
    wanted: JSONObject = {"key": "size", "operator": operator, "values": values}
    bound = a_volume(spec=_affinity(wanted))
    assert reachable(bound, a_node({"size": "7"})) is reached


def test_one_term_must_hold_entirely_and_an_empty_one_never_does() -> None:
    yes: JSONObject = {"key": "a", "operator": "Exists"}
    no: JSONObject = {"key": "b", "operator": "Exists"}
    named = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    terms = [{"matchExpressions": [yes, no]}, {"matchExpressions": [yes], "matchFields": [named]}]
    either = a_volume(spec={"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}})
    assert reachable(either, a_node({"a": ""}))
    assert not reachable(a_volume(spec=_affinity(yes, no)), a_node({"a": ""}))
    assert not reachable(a_volume(spec=_affinity()), a_node({"a": ""}))
    assert reachable(a_volume(), a_node())


def test_zone_labels_bind_only_nodes_that_say_where_they_are() -> None:
    zone = "topology.kubernetes.io/zone"
    labelled = msgspec.convert(
        {"metadata": {"name": "v", "labels": {zone: "z1__z2"}}}, PersistentVolume
    )
    assert in_zone(labelled, a_node({zone: "z2"}))
    assert not in_zone(labelled, a_node({zone: "z3"}))
    assert in_zone(labelled, a_node())


@pytest.mark.parametrize(
    ("offered", "limit"),
    [({}, DEFAULT_LIMIT), ({"pods": "1"}, DEFAULT_LIMIT), ({"attachable-volumes-csi-d": "3"}, 3)],
)
def test_a_node_says_how_many_volumes_it_takes(offered: dict[str, str], limit: int) -> None:
    node = msgspec.convert({"metadata": {}, "status": {"allocatable": offered}}, Node)
    assert volume_limit(node, "d") == limit


# What is attached and detached -------------------------------------------------------------------

NAME = f"kubernetes.io/csi/{DRIVER}^v"
IN_USE = frozenset({NAME})
OUT = "node.kubernetes.io/out-of-service"


def an_attachment(
    *, attached: bool = True, deleted: bool = False, error: bool = False
) -> VolumeAttachment:
    status: JSONObject = {"attached": attached}
    if error:
        status["detachError"] = {"message": "no"}
    metadata: JSONObject = {"name": "va", "uid": "u"}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    source = {"persistentVolumeName": "v"}
    spec = {"attacher": DRIVER, "nodeName": "n", "source": source}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, VolumeAttachment)


@pytest.mark.parametrize(
    ("node", "attachment", "idle", "mounted", "detached", "listed", "again"),
    [
        # used, or not yet attached
        (a_node(), an_attachment(), None, IN_USE, False, True, None),
        (a_node(), an_attachment(attached=False), None, frozenset(), False, False, None),
        # nobody's: at once if unmounted, else when the kubelet says so
        (a_node(), an_attachment(), 0.0, frozenset(), True, False, None),
        (a_node(), an_attachment(), 9999.0, IN_USE, False, True, None),
        (a_node(), an_attachment(attached=False), 0.0, frozenset(), True, False, None),
        # a kubelet that is silent is given six minutes, a Node that is gone as well
        (a_node(ready=False), an_attachment(), 100.0, IN_USE, False, True, 260.0),
        (a_node(ready=False), an_attachment(), 360.0, IN_USE, True, False, None),
        (a_node(ready=False), an_attachment(), 0.0, frozenset(), True, False, None),
        (None, an_attachment(), 100.0, IN_USE, False, True, 260.0),
        (None, an_attachment(), 360.0, IN_USE, True, False, None),
        # out of service: none
        (a_node(ready=False, taint=OUT), an_attachment(), 0.0, IN_USE, True, False, None),
        # being detached already, by us or by others; one that failed is listed again
        (a_node(), an_attachment(deleted=True), 5.0, frozenset(), False, False, None),
        (a_node(listed=NAME), an_attachment(deleted=True), None, IN_USE, False, True, None),
        # the next pod must not mount what is going
        (a_node(), an_attachment(deleted=True), None, frozenset(), False, False, None),
        (a_node(listed=NAME), an_attachment(deleted=True), None, frozenset(), False, False, None),
        # nor what its kubelet, a moment too fast, mounts though it is on the list no more
        (a_node(), an_attachment(deleted=True), None, IN_USE, False, False, None),
        (a_node(), an_attachment(deleted=True, error=True), None, frozenset(), False, False, None),
        (a_node(), an_attachment(deleted=True, error=True), 5.0, frozenset(), False, True, None),
    ],
)
def test_an_attachment_ends_when_nobody_needs_it_and_no_kubelet_has_it_mounted(
    node: Node | None,
    attachment: VolumeAttachment,
    idle: float | None,
    mounted: frozenset[str],
    detached: bool,
    listed: bool,
    again: float | None,
) -> None:
    found = decide(node, [Held(attachment, NAME, idle)], [], mounted)
    assert found == Decision(
        listed=(NAME,) if listed else (),
        detach=(attachment,) if detached else (),
        look_again=again,
    )


def test_the_attachment_of_a_volume_that_is_gone_ends_and_is_not_listed() -> None:
    orphan = Held(an_attachment(), "", 0.0)
    assert decide(a_node(), [orphan], [], IN_USE) == Decision(detach=(orphan.attachment,))


def test_of_several_volumes_each_is_judged_by_itself_and_the_first_to_be_free_is_waited_for() -> (
    None
):
    def held(name: str, idle: float | None) -> Held:
        meta = {"name": name, "uid": name}
        raw = {"metadata": meta, "status": {"attached": True}}
        return Held(msgspec.convert(raw, VolumeAttachment), name, idle)

    several = [held("a", None), held("b", 10.0), held("c", 200.0), held("d", 1.0)]
    found = decide(a_node(ready=False), several, [], frozenset({"a", "b", "c"}))
    assert found.listed == ("a", "b", "c")
    assert [one.metadata.name for one in found.detach] == ["d"]
    assert found.look_again == 160.0


@pytest.mark.parametrize(
    ("modes", "elsewhere", "attaches"),
    [
        (["ReadWriteOnce"], [], True),
        (["ReadWriteOnce"], ["m"], False),
        (["ReadWriteOncePod"], ["m"], False),
        (["ReadWriteMany"], ["m"], True),
        (["ReadWriteOnce", "ReadOnlyMany"], ["m"], True),
    ],
)
def test_an_exclusive_volume_is_attached_to_one_node(
    modes: list[str], elsewhere: list[str], attaches: bool
) -> None:
    wanted = Wanted(a_volume(spec={"accessModes": modes}), elsewhere)
    found = decide(a_node(), [], [wanted], frozenset())
    assert (bool(found.attach), bool(found.blocked)) == (attaches, not attaches)


def test_why_a_volume_cannot_come_is_told_in_the_clusters_words() -> None:
    wanted = Wanted(a_volume("v"), ["m"])
    start = 'Multi-Attach error for volume "v" Volume is already '
    assert multi_attach_message(wanted, {"m": ["q", "p"]}) == f"{start}used by pod(s) p, q"
    assert multi_attach_message(wanted, {"x": ["p"]}) == (
        f"{start}exclusively attached to one node and can't be attached to another"
    )


def test_attachments_are_called_as_the_clusters_controllers_call_them() -> None:
    digest = hashlib.sha256(f"v{DRIVER}node-1".encode()).hexdigest()
    assert attachment_name(a_volume("v"), "node-1") == f"csi-{digest}"
