from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import LEASES, NODES, PODS, Node, NodeSpec, Taint
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import ObjectMeta
from mcm.client.requests import Call, PatchType, encode_object
from mcm.client.retry import Safety
from mcm.client.transport import Lane, Request, Response, StreamResponse
from mcm.client.verbs import ObjectClient

MACHINE_PATH = "/apis/machine.sapcloud.io/v1alpha1/namespaces/shoot/machines"


R = TypeVar("R")


class Asked(ObjectClient):
    """Keeps what a verb becomes, and sends nothing."""

    def __init__(self) -> None:
        self.calls: list[tuple[Call, float | None]] = []

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        self.calls.append((call, None))
        raise _NotSent

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        self.calls.append((call, read_timeout))
        return nullcontext(StreamResponse(200, {}, aiter_of()))


class _NotSent(Exception):
    pass


async def aiter_of() -> AsyncIterator[bytes]:
    yield b""


def call_of(verb: Callable[[Asked], Coroutine[object, object, object]]) -> Call:
    """Return the call that a verb becomes."""
    asked = Asked()
    with pytest.raises(_NotSent):
        verb(asked).send(None)
    return asked.calls[0][0]


def watch_of(**options: Any) -> Request:
    asked = Asked()
    asked.watch(MACHINES, **options)
    call, read_timeout = asked.calls[0]
    return call.request(user_agent="mcm", lane=Lane.REQUEST, timeout=30, read_timeout=read_timeout)


def patched(patch: object, patch_type: PatchType, *, force: bool = False) -> Call:
    return call_of(
        lambda c: c.patch(
            MACHINES,
            "m1",
            patch,  # type: ignore[arg-type]
            namespace="shoot",
            patch_type=patch_type,
            force=force,
        )
    )


def deleted(**options: Any) -> dict[str, object]:
    call = call_of(lambda c: c.delete(MACHINES, "m1", namespace="shoot", **options))
    body: dict[str, object] = json.loads(call.body)
    return body


def test_a_get_reads_one_object() -> None:
    call = call_of(lambda c: c.get(MACHINES, "m1", namespace="shoot"))
    assert (call.verb, call.method, call.path) == (
        "GET",
        "GET",
        f"{MACHINE_PATH}/m1",
    )
    assert call.headers == {"Accept": "application/json"}
    assert not call.mutating


def test_a_cluster_scoped_resource_ignores_the_namespace() -> None:
    assert call_of(lambda c: c.get(NODES, "n1", namespace="shoot")).path == "/api/v1/nodes/n1"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "%2e%2e", "a%2fb"])
def test_a_name_that_would_reach_another_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name"):
        call_of(lambda c: c.get(MACHINES, name, namespace="shoot"))
    with pytest.raises(ValueError, match="not a valid namespace"):
        call_of(lambda c: c.get(MACHINES, "m1", namespace=name))


@given(st.text(min_size=1))
def test_a_name_never_adds_path_segments_or_a_query(name: str) -> None:
    try:
        path = call_of(lambda c: c.get(NODES, name, namespace="")).path
    except (ValueError, UnicodeEncodeError):
        return
    assert path.count("/") == 4
    assert not set(path) & set("?# \n")


def test_a_list_sends_only_what_was_asked_and_may_be_compressed() -> None:
    call = call_of(
        lambda c: c.list_page(PODS, label_selector="a=b", limit=500, resource_version="0")
    )
    assert call.path == "/api/v1/pods"
    assert call.query == (
        ("labelSelector", "a=b"),
        ("limit", "500"),
        ("resourceVersion", "0"),
    )
    assert call.headers["Accept-Encoding"] == "gzip"
    assert call.verb == "LIST"


def test_a_further_page_carries_no_version_as_the_server_would_refuse_it() -> None:
    call = call_of(
        lambda c: c.list_page(
            PODS, continue_token="c", resource_version="7", resource_version_match="NotOlderThan"
        )
    )
    assert call.query == (("continue", "c"),)


def test_a_watch_asks_for_bookmarks_and_is_not_compressed() -> None:
    request = watch_of(
        namespace="shoot", resource_version="12", timeout_seconds=400, read_timeout=70
    )
    assert request.path == MACHINE_PATH
    assert request.query == (
        ("watch", "1"),
        ("allowWatchBookmarks", "true"),
        ("resourceVersion", "12"),
        ("timeoutSeconds", "400"),
    )
    assert "Accept-Encoding" not in request.headers
    assert (request.lane, request.read_timeout) == (Lane.WATCH, 70)


def test_a_streamed_list_says_not_older_than() -> None:
    request = watch_of(timeout_seconds=400, send_initial_events=True, read_timeout=None)
    assert ("sendInitialEvents", "true") in request.query
    assert ("resourceVersionMatch", "NotOlderThan") in request.query


def test_a_create_fills_in_api_version_and_kind_and_keeps_typed_parts() -> None:
    machine = Machine(metadata=ObjectMeta(generate_name="m-", namespace="shoot"))
    call = call_of(lambda c: c.create(MACHINES, machine, namespace="shoot"))
    assert call.method == "POST"
    assert call.path == MACHINE_PATH
    assert call.query == (("fieldManager", "mcm"),)
    body = json.loads(call.body)
    assert body["apiVersion"] == "machine.sapcloud.io/v1alpha1"
    assert body["kind"] == "Machine"
    assert body["metadata"] == {"generateName": "m-", "namespace": "shoot"}
    mixed = {"metadata": {"name": "n"}, "spec": {"taints": [Taint(key="k", effect="NoExecute")]}}
    sent = call_of(lambda c: c.create(NODES, mixed, namespace="")).body
    assert json.loads(sent)["spec"] == {"taints": [{"key": "k", "effect": "NoExecute"}]}


def test_a_create_of_a_namespaced_kind_needs_the_namespace() -> None:
    with pytest.raises(ValueError, match="namespace of a Machine"):
        call_of(lambda c: c.create(MACHINES, {}, namespace=""))


def test_a_wrong_kind_in_the_body_is_overruled() -> None:
    call = call_of(lambda c: c.create(NODES, {"kind": "Pod"}, namespace=""))
    assert json.loads(call.body) == {"apiVersion": "v1", "kind": "Node"}


def test_an_update_replaces_with_put() -> None:
    call = call_of(
        lambda c: c.update(
            LEASES,
            "leader",
            {"spec": {"holderIdentity": "me"}},
            namespace="kube-system",
            subresource="",
        )
    )
    assert call.method == "PUT"
    assert json.loads(call.body)["kind"] == "Lease"
    assert call.safety is Safety.WRITE


def test_a_merge_patch_goes_as_it_is() -> None:
    call = patched({"metadata": {"resourceVersion": "5", "labels": {"a": None}}}, PatchType.MERGE)
    assert call.headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(call.body) == {"metadata": {"resourceVersion": "5", "labels": {"a": None}}}
    assert call.query == (("fieldManager", "mcm"),)


def test_a_json_patch_is_a_list_of_operations() -> None:
    operations = [{"op": "test", "path": "/metadata/uid", "value": "u"}]
    call = patched(operations, PatchType.JSON)
    assert call.headers["Content-Type"] == "application/json-patch+json"
    assert json.loads(call.body) == operations


def test_an_apply_names_its_object_and_may_be_forced() -> None:
    call = patched({"metadata": {"labels": {"a": "b"}}}, PatchType.APPLY, force=True)
    assert call.headers["Content-Type"] == "application/apply-patch+yaml"
    assert call.query == (("fieldManager", "mcm"), ("force", "true"))
    assert json.loads(call.body) == {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"labels": {"a": "b"}, "name": "m1"},
    }


@pytest.mark.parametrize(
    ("patch", "patch_type", "force"),
    [
        ({}, PatchType.JSON, False),
        ([], PatchType.MERGE, False),
        ([], PatchType.APPLY, False),
        ({}, PatchType.MERGE, True),
    ],
)
def test_a_patch_of_the_wrong_form_is_refused(
    patch: object, patch_type: PatchType, force: bool
) -> None:
    with pytest.raises(ValueError):
        patched(patch, patch_type, force=force)


def test_a_status_patch_goes_to_the_subresource() -> None:
    call = call_of(
        lambda c: c.patch(
            MACHINES,
            "m1",
            {"status": {}},
            namespace="shoot",
            subresource="status",
            patch_type=PatchType.MERGE,
            force=False,
        )
    )
    assert call.path == f"{MACHINE_PATH}/m1/status"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"uid": "u"}, {"preconditions": {"uid": "u"}}),
        (
            {"uid": "u", "resource_version": "3"},
            {"preconditions": {"uid": "u", "resourceVersion": "3"}},
        ),
        ({"propagation": "Foreground"}, {"propagationPolicy": "Foreground"}),
        ({"grace_period_seconds": 0}, {"gracePeriodSeconds": 0}),
    ],
)
def test_a_deletion_says_its_options(
    options: dict[str, object], expected: dict[str, object]
) -> None:
    assert deleted(**options) == {"apiVersion": "v1", "kind": "DeleteOptions", **expected}


def test_an_eviction_carries_the_pods_uid_and_grace() -> None:
    call = call_of(lambda c: c.evict("p", namespace="default", uid="u", grace_period_seconds=30))
    assert call.path == "/api/v1/namespaces/default/pods/p/eviction"
    assert json.loads(call.body) == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "default"},
        "deleteOptions": {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 30},
    }
    assert call.safety is Safety.EVICTION
    plain = call_of(lambda c: c.evict("p", namespace="default", uid="", grace_period_seconds=None))
    assert "deleteOptions" not in json.loads(plain.body)


def test_a_raw_path_is_absolute() -> None:
    assert call_of(lambda c: c.get_raw("/readyz", query=(("verbose", ""),))).query == (
        ("verbose", ""),
    )
    with pytest.raises(ValueError):
        call_of(lambda c: c.get_raw("readyz"))


@given(
    name=st.text(min_size=1),
    labels=st.dictionaries(st.text(), st.text(), max_size=3),
    taints=st.lists(st.builds(Taint, key=st.text(), effect=st.text()), max_size=2),
)
def test_a_struct_is_encoded_as_the_fields_it_has(
    name: str, labels: dict[str, str], taints: list[Taint]
) -> None:
    meta = ObjectMeta(name=name, labels=labels)
    node = Node(metadata=meta, spec=NodeSpec(taints=tuple(taints)))
    fields = json.loads(msgspec.json.encode(node))
    sent = encode_object(NODES, node)
    assert json.loads(sent) == {"apiVersion": "v1", "kind": "Node", **fields}
    assert sent == encode_object(NODES, fields)


def test_a_struct_that_says_nothing_is_still_an_object_of_its_kind() -> None:
    assert json.loads(encode_object(NODES, Nothing())) == {"apiVersion": "v1", "kind": "Node"}


class Nothing(msgspec.Struct):
    pass
