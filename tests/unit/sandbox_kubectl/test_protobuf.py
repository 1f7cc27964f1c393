from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.protobuf import Unsupported, to_json
from mcm.sandbox.apiserver.protobuf.decoding import _message_fields
from mcm.sandbox.apiserver.protobuf.messages import KINDS, MESSAGES

Part = tuple[int, int | str | bytes]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def message(*parts: Part) -> bytes:
    out = b""
    for number, value in parts:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def body(api_version: str, kind: str, *parts: Part) -> bytes:
    type_meta = message((1, api_version), (2, kind))
    return b"k8s\0" + message((1, type_meta), (2, message(*parts)), (3, ""), (4, ""))


def decoded(api_version: str, kind: str, *parts: Part) -> JSONObject:
    result = to_json(body(api_version, kind, *parts))
    assert (result.pop("apiVersion"), result.pop("kind")) == (api_version, kind)
    return result


def test_a_body_as_kubectl_sends_it_is_understood() -> None:
    sent = (
        b"k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x1d\n\x13\n\x03cm1\x12\x00\x1a\x00"
        b'"\x00*\x002\x008\x00B\x00\x12\x06\n\x01a\x12\x011\x1a\x00"\x00'
    )
    assert to_json(sent) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cm1"},
        "data": {"a": "1"},
    }


def test_bytes_become_base64_and_maps_keep_their_keys() -> None:
    secret = decoded(
        "v1",
        "Secret",
        (1, message((1, "s"), (11, message((1, "a"), (2, "b"))), (11, message((1, "c"))))),
        (2, message((1, "key"), (2, b"\xff\x00"))),
        (5, 0),
    )
    assert secret == {
        "metadata": {"name": "s", "labels": {"a": "b", "c": ""}},
        "data": {"key": "/wA="},
        "immutable": False,
    }


def test_zeros_say_something_only_where_a_field_may_be_absent() -> None:
    spec = message((1, 0), (5, 0), (7, 0), (9, 600))
    assert decoded("apps/v1", "Deployment", (2, spec), (3, message((1, 0), (2, 5)))) == {
        "spec": {"replicas": 0, "progressDeadlineSeconds": 600}
    }


def test_inlined_messages_stand_in_their_parents() -> None:
    volume = message((1, "v"), (2, message((19, message((1, message((1, "cm"))), (3, 420))))))
    empty = message((1, "e"), (2, message((2, ""))))
    spec = message((1, volume), (1, empty), (2, message((1, "c"), (2, "image"))))
    assert decoded("v1", "Pod", (2, spec)) == {
        "spec": {
            "volumes": [
                {"name": "v", "configMap": {"name": "cm", "defaultMode": 420}},
                {"name": "e", "emptyDir": {}},
            ],
            "containers": [{"name": "c", "image": "image"}],
        }
    }


def test_times_quantities_and_ports_have_their_json_forms() -> None:
    stamp = message((1, 1_700_000_000), (2, 123_456_789))
    lease = decoded("coordination.k8s.io/v1", "Lease", (2, message((4, stamp), (2, 15))))
    assert lease == {
        "spec": {"renewTime": "2023-11-14T22:13:20.123456Z", "leaseDurationSeconds": 15}
    }
    event = decoded("v1", "Event", (6, stamp), (7, ""), (10, ""), (8, -1))
    assert event == {"firstTimestamp": "2023-11-14T22:13:20Z", "count": -1}
    budget = message((1, message((1, 1), (2, 0), (3, "50%"))), (3, message((1, 0), (2, 0))))
    assert decoded("policy/v1", "PodDisruptionBudget", (2, budget)) == {
        "spec": {"minAvailable": "50%", "maxUnavailable": 0}
    }
    limits = message((1, message((1, "cpu"), (2, message((1, "2"))))))
    container = message((1, "c"), (8, limits))
    assert decoded("v1", "Pod", (2, message((2, container)))) == {
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}
    }


def test_an_eviction_keeps_its_options_and_managed_fields_their_json() -> None:
    options = message((1, 0), (2, message((1, "uid-1"))), (4, "Background"))
    assert decoded("policy/v1", "Eviction", (1, message((1, "p"))), (2, options)) == {
        "metadata": {"name": "p"},
        "deleteOptions": {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": "uid-1"},
            "propagationPolicy": "Background",
        },
    }
    entry = message((1, "me"), (7, message((1, '{"f:a":{}}'))))
    assert decoded("v1", "ConfigMap", (1, message((17, entry)))) == {
        "metadata": {"managedFields": [{"manager": "me", "fieldsV1": {"f:a": {}}}]}
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "magic number"),
        (b'{"kind":"Pod"}', "magic number"),
        (b"k8s\0\xff", "cut off"),
        (body("v1", "ConfigMap", (2, b"\x0a\xff")), "cut off"),
        (body("v1", "Node"), "not understood in protobuf"),
        (body("v2", "ConfigMap"), "not understood in protobuf"),
        (body("v1", "ConfigMap", (99, "x")), "field 99 of ConfigMap"),
        (body("v1", "ConfigMap", (1, 5)), "number where bytes belong"),
        (body("v1", "Secret", (5, "x")), "bytes where a number belongs"),
        (b"k8s\0" + b"\x0b", "wire type 3"),
        (b"k8s\0" + b"\xff" * 11, "too many bytes"),
        (b"k8s\0\x18" + b"\xff" * 9 + b"\x7f", "too many bytes"),
        (body("v1", "Event", (6, message((1, 1 << 62)))), "out of range"),
    ],
)
def test_what_is_not_understood_is_refused_as_a_whole(data: bytes, words: str) -> None:
    with pytest.raises(Unsupported, match=words):
        to_json(data)


def test_an_unknown_field_that_says_nothing_is_harmless() -> None:
    assert decoded("v1", "ConfigMap", (99, ""), (98, 0)) == {}


@given(st.binary(max_size=64))
def test_no_garbage_does_more_than_raise(data: bytes) -> None:
    for prefix in (b"k8s\0", body("v1", "Pod")[:20]):
        with suppress(Unsupported, UnicodeDecodeError):
            to_json(prefix + data)


def test_every_message_the_table_mentions_is_in_it() -> None:
    scalars = {"string", "bytes", "int", "bool", "time", "microTime", "quantity", "intOrString"}
    for name in [*MESSAGES, *(kind for _, kind in KINDS)]:
        for field in _message_fields(name).values():
            assert field.type in scalars | {"json", "-"} or field.type in MESSAGES, (name, field)
