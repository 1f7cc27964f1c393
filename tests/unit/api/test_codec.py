from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api import codec, nesting
from mcm.api.core import NODES, PODS, SECRETS, NodeCondition
from mcm.api.machine import (
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    ClassSpec,
    CurrentStatus,
    LastOperation,
    Machine,
    MachineSet,
    MachineSpec,
    MachineStatus,
)
from mcm.api.meta import KubeObject, ObjectMeta, OwnerReference, Resource

ALL: tuple[Resource[KubeObject], ...] = (
    MACHINES,
    MACHINE_CLASSES,
    MACHINE_SETS,
    MACHINE_DEPLOYMENTS,
    NODES,
    PODS,
    SECRETS,
)
Recorded = Callable[[str], list[codec.WatchFrame]]

WHOLE_MACHINES = replace(MACHINES, in_part=False)


def _body(**fields: object) -> bytes:
    return orjson.dumps({"metadata": {"name": "m", "namespace": "ns"}, **fields})


def _list(*items: object, **metadata: object) -> bytes:
    return orjson.dumps({"kind": "MachineList", "metadata": metadata, "items": items})


# Objects ------------------------------------------------------------------------------------------


def test_only_declared_fields_are_kept() -> None:
    machine = codec.decode_object(
        MACHINES, _body(kind="Machine", spec={"providerID": "x", "new": 1}, other=[None])
    )
    assert machine == Machine(
        metadata=ObjectMeta(name="m", namespace="ns"), spec=MachineSpec(provider_id="x")
    )


def test_nulls_of_go_clients_mean_absent() -> None:
    body = orjson.dumps(
        {
            "metadata": {"name": "m", "labels": None, "finalizers": None, "namespace": None},
            "spec": {"class": None, "providerID": None},
            "status": None,
        }
    )
    assert codec.decode_object(MACHINES, body) == Machine(metadata=ObjectMeta(name="m"))


def test_a_carried_payload_keeps_its_nulls_though_others_are_dropped() -> None:
    machine_class = codec.decode_object(
        MACHINE_CLASSES, _body(provider=None, providerSpec={"a": None, "b": [None]})
    )
    assert machine_class.provider == ""
    assert machine_class.provider_spec == {"a": None, "b": [None]}


@pytest.mark.parametrize(
    ("resource", "body", "path", "key"),
    [
        (MACHINES, _body(spec={"maxEvictRetries": "x"}), "spec.maxEvictRetries", "ns/m"),
        (MACHINE_SETS, _body(spec={"replicas": 1.5}), "spec.replicas", "ns/m"),
        (
            MACHINES,
            _body(status={"conditions": [{"type": "Ready"}]}),
            "status.conditions[0]",
            "ns/m",
        ),
        (MACHINES, b'{"metadata":{"name":"m","generation":"x"}}', "metadata.generation", "m"),
        (MACHINES, b'{"metadata":{"name":5}}', "metadata.name", ""),
        (MACHINES, b"{}", "", ""),
        (MACHINES, b"[]", "", ""),
        (MACHINES, b"", "", ""),
        (MACHINES, b'{"metadata":', "", ""),
        (MACHINES, b'{"metadata":{"name":"\xff"}}', "", ""),
    ],
)
def test_what_cannot_be_decoded_names_object_and_field(
    resource: Resource[KubeObject], body: bytes, path: str, key: str
) -> None:
    with pytest.raises(codec.DecodeError) as caught:
        codec.decode_object(resource, body)
    error = caught.value
    assert (error.path, error.key, error.resource) == (path, key, resource.name)
    assert error.detail and error.detail in str(error) and path in str(error) and key in str(error)


def test_a_payload_nested_without_end_is_an_error_of_that_object_only() -> None:
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    body = b'{"metadata":{"name":"m"},"providerSpec":' + deep + b"}"
    with pytest.raises(codec.DecodeError):
        codec.decode_object(MACHINE_CLASSES, body)


@pytest.mark.parametrize("depth", [600, 2000, 5000, 50_000])
@pytest.mark.parametrize("opening", [b'{"a":', b"[", b'[{"a":'])
def test_how_deep_a_payload_may_be_depends_on_no_parser(depth: int, opening: bytes) -> None:
    closing = {b"[": b"]", b'{"a":': b"}"}.get(opening, b"}]")
    deep = opening * depth + b"1" + closing * depth
    body = b'{"metadata":{"name":"m"},"providerSpec":{"x":' + deep + b"}}"
    with pytest.raises(codec.DecodeError) as caught:
        codec.decode_object(MACHINE_CLASSES, body)
    assert (caught.value.key, caught.value.detail) == ("m", "nested too deep to be read")


@pytest.mark.parametrize("levels", [nesting.READABLE - 1, nesting.READABLE])
def test_up_to_so_many_levels_a_payload_is_read_as_it_is(levels: int) -> None:
    inside = levels - 1
    deep = b'{"a":' * inside + b'"}{"' + b"}" * inside
    body = b'{"metadata":{"name":"m"},"providerSpec":' + deep + b"}"
    value: object = codec.decode_object(MACHINE_CLASSES, body).provider_spec
    for _ in range(inside):
        assert isinstance(value, dict)
        value = value["a"]
    assert value == "}{"


@pytest.mark.parametrize("depth", [600, 2000, 5000, 50_000])
@pytest.mark.parametrize("nothing", [b"", b',"namespace":null'])
def test_how_deep_a_field_is_that_nobody_reads_is_no_matter(depth: int, nothing: bytes) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    body = b'{"metadata":{"name":"m"%s},"unknown":%s}' % (nothing, deep)
    assert codec.decode_object(MACHINES, body).metadata.name == "m"
    assert nothing or codec.decode_metadata(body).name == "m"


def test_payloads_are_carried_by_what_users_fill_and_not_by_what_is_many() -> None:
    carrying = [resource for resource in ALL if codec.carries_payload(resource)]
    assert carrying == [MACHINE_CLASSES, MACHINE_SETS, MACHINE_DEPLOYMENTS]


def test_the_decoder_of_a_type_is_made_once() -> None:
    assert codec.decoder_for(MACHINES) is codec.decoder_for(MACHINES)
    assert codec.decoder_for(MACHINES).type is Machine


def test_metadata_is_read_from_an_object_of_any_kind() -> None:
    body = _body(spec="nonsense")
    assert codec.decode_metadata(body).key == "ns/m"
    with pytest.raises(codec.DecodeError) as caught:
        codec.decode_metadata(b'{"metadata":{"name":"m","labels":{"a":1}}}')
    assert caught.value.key == "m"


def test_defaults_are_not_written() -> None:
    machine = Machine(metadata=ObjectMeta(name="m"), spec=MachineSpec(class_=ClassSpec(name="c")))
    assert codec.encode(machine) == b'{"metadata":{"name":"m"},"spec":{"class":{"name":"c"}}}'
    assert codec.to_json_object(machine) == {
        "metadata": {"name": "m"},
        "spec": {"class": {"name": "c"}},
    }


def test_a_json_object_may_hold_typed_parts() -> None:
    moment = datetime(2026, 11, 21, 4, 51, 33, tzinfo=UTC)
    status = CurrentStatus(phase="Running", last_update_time=moment)
    assert orjson.loads(codec.encode({"status": {"currentStatus": status}})) == {
        "status": {"currentStatus": {"phase": "Running", "lastUpdateTime": "2026-11-21T04:51:33Z"}}
    }


# Lists --------------------------------------------------------------------------------------------


def test_a_page_says_where_the_next_one_starts() -> None:
    body = _list(
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b"}},
        **{"resourceVersion": "7", "continue": "next", "remainingItemCount": 3},
    )
    page = codec.decode_list(MACHINES, body)
    assert [m.metadata.name for m in page.items] == ["a", "b"]
    assert page.metadata == codec.ListMeta(
        resource_version="7", continue_="next", remaining_item_count=3
    )
    assert page.bad == ()


@pytest.mark.parametrize(
    "body",
    [b'{"metadata":{"resourceVersion":"7"},"items":null}', b'{"metadata":{"resourceVersion":"7"}}'],
)
def test_a_list_without_items_is_empty(body: bytes) -> None:
    page = codec.decode_list(MACHINES, body)
    assert page.items == () and page.bad == () and page.metadata.resource_version == "7"


def test_a_bad_item_does_not_spoil_the_others() -> None:
    body = _list(
        {"metadata": {"name": "a"}},
        {"metadata": {"name": "b", "namespace": "ns", "uid": "u"}, "spec": {"class": 5}},
        {"metadata": {"name": "c", "labels": None}},
        {"metadata": {"name": "d", "generation": "x"}},
        "nonsense",
        resourceVersion="7",
    )
    page = codec.decode_list(WHOLE_MACHINES, body)
    assert [m.metadata.name for m in page.items] == ["a", "c"]
    assert page.metadata.resource_version == "7"
    assert [(b.metadata.key, b.error.key, b.error.path) for b in page.bad] == [
        ("ns/b", "ns/b", "spec.class"),
        ("d", "d", "metadata.generation"),
        ("", "", ""),
    ]
    assert page.bad[0].metadata.uid == "u"


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'{"items":[{]}', b'{"items":{}}'])
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(codec.DecodeError, match="list of machines"):
        codec.decode_list(MACHINES, body)


# Watch frames -------------------------------------------------------------------------------------


def test_a_frame_is_an_envelope_around_bytes() -> None:
    frame = codec.decode_frame(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}')
    assert frame.type == "ADDED"
    assert codec.decode_object(MACHINES, frame.object).metadata.name == "a"
    assert codec.decode_metadata(frame.object).name == "a"


def test_the_bookmark_that_ends_the_initial_events_is_known() -> None:
    line = (
        b'{"type":"BOOKMARK","object":{"kind":"Machine","metadata":{"resourceVersion":"9",'
        b'"annotations":{"k8s.io/initial-events-end":"true"}}}}'
    )
    metadata = codec.decode_metadata(codec.decode_frame(line).object)
    assert metadata.resource_version == "9"
    assert codec.ends_initial_events(metadata)
    assert not codec.ends_initial_events(ObjectMeta(resource_version="9"))


@pytest.mark.parametrize("line", [b"", b"{", b"{}", b'{"type":"ADDED"}', b'{"object":{}}', b"[1]"])
def test_what_is_no_frame_is_refused(line: bytes) -> None:
    with pytest.raises(codec.DecodeError, match="watch event"):
        codec.decode_frame(line)


# Recorded and random objects ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "resource", [MACHINES, MACHINE_SETS, MACHINE_DEPLOYMENTS, MACHINE_CLASSES, NODES, SECRETS]
)
def test_recorded_objects_survive_a_round_trip(
    recorded: Recorded, resource: Resource[KubeObject]
) -> None:
    frames = recorded(resource.plural)
    assert frames
    for frame in frames:
        obj = codec.decode_object(resource, frame.object)
        assert codec.decode_object(resource, codec.encode(obj)) == obj
        lost = _lost(orjson.loads(codec.encode(obj)), orjson.loads(bytes(frame.object)))
        assert lost == [], obj.metadata.key


def _lost(written: object, original: object, path: str = "") -> list[str]:
    """Where what we write says anything that the original does not say."""
    if isinstance(written, dict) and isinstance(original, dict):
        return [
            fault
            for key, value in written.items()
            for fault in _lost(value, original.get(key), f"{path}.{key}")
        ]
    if isinstance(written, list) and isinstance(original, list) and len(written) == len(original):
        pairs = zip(written, original, strict=True)
        return [f for i, (w, o) in enumerate(pairs) for f in _lost(w, o, f"{path}[{i}]")]
    return [] if written == original else [f"{path}: {original!r} became {written!r}"]


def test_what_a_machine_declares_is_read_from_the_recording(recorded: Recorded) -> None:
    machines = [codec.decode_object(MACHINES, f.object) for f in recorded("machines")]
    running = next(m for m in machines if m.phase == "Running")
    assert running.node_name == running.metadata.name
    assert running.spec.class_ == ClassSpec(kind="MachineClass", name="class-a")
    assert running.spec.drain_timeout == "10m0s"
    assert running.status.conditions[0].type == "Ready"
    owner = running.metadata.controller_ref()
    assert owner is not None and owner.kind == "MachineSet"


def test_a_recorded_list_decodes_as_its_objects_do(recorded: Recorded) -> None:
    frames = recorded("machines")
    body = b'{"metadata":{},"items":[%s]}' % b",".join(bytes(f.object) for f in frames)
    page = codec.decode_list(MACHINES, body)
    assert page.items == tuple(codec.decode_object(MACHINES, f.object) for f in frames)
    assert page.bad == ()


def test_a_null_in_a_declared_field_equals_its_absence(recorded: Recorded) -> None:
    frame = next(f for f in recorded("machines") if b'"phase":"Running"' in bytes(f.object))
    original = orjson.loads(bytes(frame.object))
    for part, field in [
        *(("metadata", f) for f in ("labels", "annotations", "ownerReferences", "generateName")),
        *(("spec", f) for f in ("class", "nodeTemplate", "drainTimeout", "providerID")),
        *(("status", f) for f in ("conditions", "lastOperation", "currentStatus")),
    ]:
        nulled = {**original, part: {**original[part], field: None}}
        absent = {**original, part: {k: v for k, v in original[part].items() if k != field}}
        assert codec.decode_object(MACHINES, orjson.dumps(nulled)) == codec.decode_object(
            MACHINES, orjson.dumps(absent)
        ), (part, field)


_texts = st.text(max_size=8)
_maps = st.dictionaries(_texts, _texts, max_size=3)
_times = st.none() | st.datetimes(timezones=st.just(UTC)).filter(lambda t: t.year > 1)
_int32 = st.integers(-(2**31), 2**31 - 1)
_machines = st.builds(
    Machine,
    metadata=st.builds(
        ObjectMeta,
        name=_texts,
        namespace=_texts,
        generation=_int32,
        creation_timestamp=_times,
        labels=_maps,
        annotations=_maps,
        owner_references=st.lists(
            st.builds(OwnerReference, api_version=_texts, kind=_texts, name=_texts, uid=_texts),
            max_size=2,
        ).map(tuple),
        finalizers=st.lists(_texts, max_size=2).map(tuple),
    ),
    spec=st.builds(
        MachineSpec,
        class_=st.builds(ClassSpec, api_group=_texts, kind=_texts, name=_texts),
        provider_id=_texts,
        drain_timeout=st.none() | _texts,
        disable_health_timeout=st.none() | st.booleans(),
        max_evict_retries=st.none() | _int32,
    ),
    status=st.builds(
        MachineStatus,
        conditions=st.lists(
            st.builds(
                NodeCondition,
                type=_texts,
                status=_texts,
                reason=_texts,
                message=_texts,
                last_transition_time=_times,
            ),
            max_size=3,
        ).map(tuple),
        last_operation=st.builds(LastOperation, description=_texts, last_update_time=_times),
        current_status=st.builds(CurrentStatus, phase=_texts, timeout_active=st.booleans()),
    ),
)


@given(_machines)
def test_any_machine_survives_a_round_trip(machine: Machine) -> None:
    assert codec.decode_object(MACHINES, codec.encode(machine)) == machine
    as_json = codec.to_json_object(machine)
    assert msgspec.convert(as_json, Machine) == machine


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | _texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["metadata", "name", "labels", "spec", "status", "items", "replicas", "conditions"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(ALL), st.binary(max_size=40) | _json.map(msgspec.json.encode))
def test_any_body_is_an_object_or_a_decode_error(
    resource: Resource[KubeObject], body: bytes
) -> None:
    for decode in (codec.decode_object, codec.decode_list):
        try:
            decode(resource, body)
        except codec.DecodeError as error:
            assert error.detail  # noqa: PT017 - it need not be raised


@given(_json, _json)
def test_a_list_loses_no_item(first: object, second: object) -> None:
    page = codec.decode_list(MACHINE_SETS, orjson.dumps({"items": [first, second]}))
    assert len(page.items) + len(page.bad) == 2
    assert all(isinstance(item, MachineSet) for item in page.items)
