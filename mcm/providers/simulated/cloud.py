"""The cloud itself: boots VirtualMachines, and keeps a kubelet at work in each that runs.

It is built like any controller here: four queues over mirrors of the API. All it must remember
stands in the VMs' status, so it can be stopped and started again at any moment.
"""

from __future__ import annotations

import asyncio
import random
from datetime import datetime
from typing import final

from prometheus_client import CollectorRegistry

from mcm.api.core import NODES, Node
from mcm.api.durations import parse_duration
from mcm.api.timestamps import micro_time
from mcm.client.client import Client
from mcm.client.errors import NotFound
from mcm.clock import Clock
from mcm.controllers.runtime import DONE, Controller, Outcome
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.providers.simulated.kubelet import Kubelets
from mcm.providers.simulated.mounts import Mounts
from mcm.providers.simulated.pods import BY_NODE, RUNNABLE_PODS, PodRunner, RunnablePod
from mcm.providers.simulated.virtual_machine import (
    VIRTUAL_MACHINES,
    PowerState,
    VirtualMachine,
    VMPhase,
)
from mcm.workqueue import ExponentialLimiter, WorkQueue

_READY_SECONDS = 1.0
_SOONEST_RETRY, _LATEST_RETRY = 0.05, 5.0


@final
class SimulatedCloud:
    """``control`` holds the VirtualMachines of ``namespace``, ``target`` is what they join.

    ``heartbeat_interval`` is in seconds. One cloud at a time may serve a namespace.
    """

    def __init__(
        self,
        control: Client,
        target: Client,
        *,
        namespace: str,
        clock: Clock,
        randomness: random.Random,
        heartbeat_interval: float = 10.0,
        workers: int = 16,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._control = control
        self._clock = clock
        self._factories = (
            InformerFactory(
                control,
                clock=clock,
                namespace=namespace,
                registry=registry,
                name="cloud",
                randomness=randomness,
            ),
            InformerFactory(
                target, clock=clock, registry=registry, name="kubelets", randomness=randomness
            ),
        )
        self._vms = self._factories[0].store(VIRTUAL_MACHINES)
        self._vms.add_index(BY_NODE, lambda vm: (vm.spec.node_name,))
        self._nodes = self._factories[1].store(NODES)
        self._pods = self._factories[1].store(RUNNABLE_PODS)
        self._pods.add_index(BY_NODE, lambda pod: (pod.spec.node_name,))
        self._kubelets = Kubelets(
            target,
            self._nodes,
            clock=clock,
            randomness=randomness,
            heartbeat_interval=heartbeat_interval,
        )
        self._vm_queue = _queue("simulated-vms", clock)
        self._beat_queue = _queue("simulated-heartbeats", clock)
        self._pod_queue = _queue("simulated-pods", clock)
        self._mount_queue = _queue("simulated-mounts", clock)
        self._mounts = Mounts(
            target,
            self._factories[1],
            is_alive=self._is_alive,
            wake_pod=self._pod_queue.add,
            wake_node=self._mount_queue.add,
        )
        runner = PodRunner(
            target,
            self._pods,
            clock=clock,
            is_alive=self._is_alive,
            lacks_volumes=self._mounts.lacks_volumes,
        )
        self._controllers = tuple(
            Controller(queue.name, queue, reconcile, workers=workers, clock=clock)
            for queue, reconcile in (
                (self._vm_queue, self._reconcile),
                (self._beat_queue, self._beat),
                (self._pod_queue, runner.reconcile),
                (self._mount_queue, self._mounts.report),
            )
        )
        self._factories[0].informer(VIRTUAL_MACHINES).add_handler(self._on_vm)
        self._factories[1].informer(NODES).add_handler(self._on_node)
        self._factories[1].informer(RUNNABLE_PODS).add_handler(self._on_pod)

    async def run(self) -> None:
        """Simulate until cancelled."""
        async with asyncio.TaskGroup() as group:
            for factory in self._factories:
                group.create_task(factory.run())
            for factory in self._factories:
                await factory.wait_synced()
            for controller in self._controllers:
                group.create_task(controller.run())

    # ---- what an event concerns -----------------------------------------------------------------

    def _on_vm(self, change: Change[VirtualMachine]) -> None:
        self._vm_queue.add(change.object.metadata.key)

    def _on_node(self, change: Change[Node]) -> None:
        """A running kubelet corrects what others say of its Node."""
        for vm in self._vms.by_index(BY_NODE, change.object.metadata.name):
            self._vm_queue.add(vm.metadata.key)

    def _on_pod(self, change: Change[RunnablePod]) -> None:
        if change.object.spec.node_name:
            self._pod_queue.add(change.object.metadata.key)

    def _is_alive(self, node_name: str) -> bool:
        return any(_runs(vm) for vm in self._vms.by_index(BY_NODE, node_name))

    # ---- a VM's life ----------------------------------------------------------------------------

    async def _reconcile(self, key: str) -> Outcome:
        vm = self._vms.get(key)
        if vm is None:
            return DONE
        if vm.spec.power_state != PowerState.ON:
            return await self._stop(vm)
        started = vm.status.start_time
        if vm.status.phase in ("", VMPhase.STOPPED) or started is None:
            return await self._start(vm)
        return await self._run(vm, (self._clock.now() - started).total_seconds())

    async def _start(self, vm: VirtualMachine) -> Outcome:
        await self._set_status(vm, VMPhase.BOOTING, start=self._clock.now(), joined=False)
        return Outcome(after=_seconds(vm.spec.boot_latency), reason="booting")

    async def _stop(self, vm: VirtualMachine) -> Outcome:
        if vm.status.phase != VMPhase.STOPPED:
            await self._set_status(vm, VMPhase.STOPPED, start=vm.status.start_time, joined=False)
        return DONE

    async def _run(self, vm: VirtualMachine, age: float) -> Outcome:
        booted = _seconds(vm.spec.boot_latency)
        joined = booted + _seconds(vm.spec.join_latency)
        if age < booted:
            return Outcome(after=booted - age, reason="booting")
        joins = vm.spec.joins and vm.spec.node_name
        if joins and not vm.status.joined and age >= joined:
            await self._kubelets.register(vm)
            await self._set_status(vm, VMPhase.RUNNING, start=vm.status.start_time, joined=True)
            self._beat_queue.add_after(vm.metadata.key, self._kubelets.next_heartbeat())
            return Outcome(after=_READY_SECONDS, reason="until the node is ready")
        if vm.status.phase == VMPhase.BOOTING:
            await self._set_status(vm, VMPhase.RUNNING, start=vm.status.start_time, joined=False)
        if not joins:
            return DONE
        if not vm.status.joined:
            return Outcome(after=joined - age, reason="joining")
        ready = joined + _READY_SECONDS - age
        if ready > 0:
            return Outcome(after=ready, reason="until the node is ready")
        await self._kubelets.report(vm)
        self._beat_queue.add_after(vm.metadata.key, self._kubelets.next_heartbeat())
        self._wake_pods(vm)
        return DONE

    async def _beat(self, key: str) -> Outcome:
        vm = self._vms.get(key)
        if vm is None or not _runs(vm) or self._nodes.get(vm.spec.node_name) is None:
            return DONE
        await self._kubelets.heartbeat(vm)
        return Outcome(after=self._kubelets.next_heartbeat(), reason="heartbeat")

    def _wake_pods(self, vm: VirtualMachine) -> None:
        for pod in self._pods.by_index(BY_NODE, vm.spec.node_name):
            self._pod_queue.add(pod.metadata.key)
        self._mounts.wake(vm.spec.node_name)

    async def _set_status(
        self, vm: VirtualMachine, phase: VMPhase, *, start: datetime | None, joined: bool
    ) -> None:
        status = {
            "phase": phase.value,
            "startTime": micro_time(start) if start else None,
            "joined": joined,
        }
        try:
            answer = await self._control.patch(
                VIRTUAL_MACHINES,
                vm.metadata.name,
                {"metadata": {"uid": vm.metadata.uid}, "status": status},
                namespace=vm.metadata.namespace,
                subresource="status",
            )
        except NotFound:
            return  # deleted meanwhile
        self._vms.observe(answer)


def _runs(vm: VirtualMachine) -> bool:
    return vm.spec.power_state == PowerState.ON and vm.status.joined


def _queue(name: str, clock: Clock) -> WorkQueue[str]:
    """A kubelet tries again within seconds however long the API server was away: the default
    back-off would let nodes look dead long after."""
    limiter = ExponentialLimiter[str](base=_SOONEST_RETRY, cap=_LATEST_RETRY)
    return WorkQueue(name, clock=clock, limiter=limiter)


def _seconds(duration: str) -> float:
    try:
        return parse_duration(duration).total_seconds()
    except ValueError:
        return 0.0  # the driver refuses such a class; only a VM written by hand gets here
