from __future__ import annotations

import asyncio
import json
import random
from datetime import UTC, datetime

from mcm.api.core import PODS, Pod, Secret
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.client.client import Client
from mcm.clock import LoopClock
from mcm.informers import Change, InformerFactory, ReflectorOptions, Store
from mcm.informers.sharing import share_repeated
from mcm.informers.watch_events import Event, FrameDecoder
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.virtualtime import run_virtual


def decoded(name: str, version: int, message: str = "kubelet is ready") -> Machine:
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": message}
    obj = {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": str(version)},
        "status": {"conditions": [condition]},
    }
    frame = FrameDecoder(MACHINES).decode(json.dumps({"type": "ADDED", "object": obj}).encode())
    assert isinstance(frame, Event)
    return frame.object


def test_texts_that_machines_repeat_are_held_once() -> None:
    store: Store[Machine] = Store()
    one, other = decoded("a", 11), decoded("b", 12)
    assert one.status.conditions[0].message is not other.status.conditions[0].message
    store.put(one)
    store.put(other)
    assert one.status.conditions[0].message is other.status.conditions[0].message
    assert one.status.conditions[0].reason is other.status.conditions[0].reason


def test_conditions_that_did_not_change_are_taken_over() -> None:
    store: Store[Machine] = Store()
    before, same, changed = decoded("a", 11), decoded("a", 12), decoded("a", 13, "not any more")
    store.put(before)
    store.put(same)
    assert same.status.conditions is before.status.conditions
    store.put(changed)
    assert changed.status.conditions[0].message == "not any more"
    assert before.status.conditions[0].message == "kubelet is ready"


def test_kinds_without_conditions_are_left_alone() -> None:
    secret = Secret(metadata=ObjectMeta(name="s"), data={"a": "b"})
    share_repeated(secret, None)
    assert secret == Secret(metadata=ObjectMeta(name="s"), data={"a": "b"})


def decoded_pod(name: str) -> Pod:
    obj = {
        "metadata": {"name": name, "uid": name, "resourceVersion": "7"},
        "spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]},
    }
    frame = FrameDecoder(PODS).decode(json.dumps({"type": "ADDED", "object": obj}).encode())
    assert isinstance(frame, Event)
    return frame.object


def test_tolerations_that_pods_repeat_are_held_once() -> None:
    one, other = decoded_pod("a"), decoded_pod("b")
    assert one.spec.tolerations is not other.spec.tolerations
    store: Store[Pod] = Store()
    store.put(one)
    store.put(other)
    assert one.spec.tolerations is other.spec.tolerations


def test_pods_of_a_streamed_list_share_too_and_a_later_list_is_no_news() -> None:
    """What nobody reads of a pod is forgotten before it is compared with what is known of it."""

    async def main() -> None:
        clock = LoopClock(datetime(2026, 1, 1, tzinfo=UTC))
        server = ApiServer(clock=clock, random=random.Random(1))
        client = Client(LoopbackTransport(server), clock=clock)
        for name in ("a", "b"):
            await client.create(PODS, pod_to_create(name), namespace="default")
        factory = InformerFactory(
            client, clock=clock, options=ReflectorOptions(streamed_lists=True)
        )
        informer = factory.informer(PODS)
        changes: list[Change[Pod]] = []
        informer.add_handler(changes.append)
        running = asyncio.create_task(factory.run())
        await factory.wait_synced()
        one, other = informer.store.list()
        assert one.metadata.labels is other.metadata.labels
        assert one.spec.tolerations is other.spec.tolerations
        assert not one.metadata.annotations

        server.restart()
        await client.create(PODS, pod_to_create("c"), namespace="default")
        server.restart()
        await clock.sleep(120)
        assert informer.stats.relists > 0
        assert sorted(change.object.metadata.name for change in changes) == ["a", "b", "c"]
        running.cancel()
        await asyncio.wait({running})

    run_virtual(main)


def pod_to_create(name: str) -> JSONObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"app": "web"},
            "annotations": {"cni.example.com/ip": f"10.0.0.{ord(name)}"},
        },
        "spec": {
            "containers": [{"name": "main", "image": "web"}],
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    }
