"""Builds the steps of a machine's life, each with what it needs and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import final

from mcm.controllers.machine.class_migration.migration import ClassMigration
from mcm.controllers.machine.class_migration.references import References
from mcm.controllers.machine.creation.bootstrap_token import BootstrapTokens
from mcm.controllers.machine.creation.claim import claim
from mcm.controllers.machine.creation.deadline import CreationTime
from mcm.controllers.machine.creation.flow import Creation
from mcm.controllers.machine.creation.timeout import CreationTimeout
from mcm.controllers.machine.creation.token_upkeep import TokenUpkeep
from mcm.controllers.machine.creation.turns import Turns
from mcm.controllers.machine.creation.vm import VMCreation
from mcm.controllers.machine.deletion.drain import DrainBeforeDeletion
from mcm.controllers.machine.deletion.flow import Deletion
from mcm.controllers.machine.deletion.node_condition import TerminatingCondition
from mcm.controllers.machine.deletion.node_name import NodeNameSearch
from mcm.controllers.machine.deletion.node_object import NodeObjectDeletion
from mcm.controllers.machine.deletion.out_of_service import OutOfService
from mcm.controllers.machine.deletion.record import DeletionRecord
from mcm.controllers.machine.deletion.release import Release
from mcm.controllers.machine.deletion.steps import DeletionStep
from mcm.controllers.machine.deletion.telling import DeletionTelling
from mcm.controllers.machine.deletion.vm import VMDeletion
from mcm.controllers.machine.deletion.volumes import VolumeDetachment
from mcm.controllers.machine.deletion.volumes_after_vm import VolumesAfterVM
from mcm.controllers.machine.deletion.with_node import DeletionWithNode
from mcm.controllers.machine.draining.node_drain import NodeDrain
from mcm.controllers.machine.draining.telling import DrainTelling
from mcm.controllers.machine.draining.volume_ids import VolumeIds
from mcm.controllers.machine.flow import Step
from mcm.controllers.machine.health.check import HealthCheck
from mcm.controllers.machine.health.giving_up import GivingUp
from mcm.controllers.machine.health.validity import complain_if_invalid
from mcm.controllers.machine.hot_update.flow import HotUpdate
from mcm.controllers.machine.hot_update.progress import HotUpdateProgress
from mcm.controllers.machine.in_place_update.in_place_update import InPlaceUpdate
from mcm.controllers.machine.memory import Memory
from mcm.controllers.machine.metrics import MachineMetrics
from mcm.controllers.machine.node.settlement import NodeSettlement
from mcm.controllers.machine.node.template_sync import NodeTemplateSync
from mcm.controllers.machine.ports import ControlCluster, TargetCluster
from mcm.controllers.machine.preservation.preservation import Preservation
from mcm.controllers.machine.reconciler import StepAct
from mcm.controllers.provider import Provider
from mcm.controllers.reachability import Reachability
from mcm.controllers.rollouts import Rollouts
from mcm.drain.engine import DrainEngine


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """All there is to build from. ``target`` is None where machines join no cluster."""

    control: ControlCluster
    target: TargetCluster | None
    references: References
    rollouts: Rollouts | None
    provider: Provider
    memory: Memory
    giving_up: GivingUp
    metrics: MachineMetrics
    drain_telling: DrainTelling
    random: Random
    reachability: Callable[[], Reachability]
    hot_progress: HotUpdateProgress
    drains: DrainEngine | None
    volume_ids: VolumeIds | None
    """Both are None where there is no target cluster."""

    def acts(self) -> Mapping[Step, StepAct]:
        """Return what is done at each step; those of Nodes only if there is a target cluster."""
        drain = self._drain()
        if self.target is None or drain is None:
            return self._acts_of_the_vm(None)
        tokens = BootstrapTokens(
            self.control, self.target, self.memory.tokens, time=self._creation_time()
        )
        return {
            **self._acts_of_the_vm(tokens),
            **self._acts_of_the_node(self.target, tokens, drain),
        }

    def _acts_of_the_vm(self, tokens: BootstrapTokens | None) -> Mapping[Step, StepAct]:
        return {
            Step.CLAIM: partial(claim, self.control),
            Step.MIGRATE_CLASS: ClassMigration(
                self.control, self.references, provider=self.provider, random=self.random
            ).migrate,
            Step.VALIDATE: partial(complain_if_invalid, self.control),
            Step.PRESERVE: Preservation(self.control, self.target, self._drain()).follow,
            Step.UPDATE_VM: self._hot_update().update,
            Step.CREATE: self._creation(tokens).create,
            Step.GIVE_UP_CREATION: self._creation_timeout().check,
            Step.DELETE: self._deletion(tokens).delete,
        }

    def _acts_of_the_node(
        self, target: TargetCluster, tokens: BootstrapTokens, drain: NodeDrain
    ) -> Mapping[Step, StepAct]:
        control, memory = self.control, self.memory
        with_node = DeletionWithNode(
            control, target, lost_node=memory.lost_node, reachability=self.reachability
        )
        nodes = NodeTemplateSync(control, target, rollouts=self.rollouts, refusals=memory.refusals)
        health = HealthCheck(
            control,
            target,
            nodes=nodes,
            held_since=memory.held_since,
            time=self._creation_time(),
            giving_up=self.giving_up,
            reachability=self.reachability,
            tokens=tokens,
            metrics=self.metrics,
        )
        in_place = InPlaceUpdate(control, target, drain=drain, reachability=self.reachability)
        return {
            Step.SETTLE_NODE: NodeSettlement(control, target).settle,
            Step.DELETE_WITH_NODE: with_node.follow,
            Step.UPDATE_IN_PLACE: in_place.update,
            Step.CHECK_HEALTH: health.check,
            Step.SYNC_NODE: nodes.sync,
            Step.KEEP_TOKEN: TokenUpkeep(control, target, tokens).keep,
        }

    def _hot_update(self) -> HotUpdate:
        return HotUpdate(
            self.control,
            provider=self.provider,
            places=self.memory.places,
            pace=self.memory.hot_updates,
            progress=self.hot_progress,
        )

    def _creation(self, tokens: BootstrapTokens | None) -> Creation:
        time = self._creation_time()
        turns = Turns(self.control, self.memory.shared, time=time)
        vms = VMCreation(
            self.control,
            self.target,
            provider=self.provider,
            tokens=tokens,
            time=time,
            turns=turns,
            metrics=self.metrics,
        )
        return Creation(
            self.control,
            vms,
            has_target=self.target is not None,
            places=self.memory.places,
            backoff=self.memory.backoff,
            turns=turns,
            obstacles=self.memory.obstacles,
            time=time,
        )

    def _creation_timeout(self) -> CreationTimeout:
        return CreationTimeout(
            self.control,
            obstacles=self.memory.obstacles,
            shared=self.memory.shared,
            time=self._creation_time(),
            told=self.memory.told_timeouts,
            reachability=self.reachability,
        )

    def _creation_time(self) -> CreationTime:
        return CreationTime(
            self.control, seen=self.memory.first_sights, reachability=self.reachability
        )

    def _drain(self) -> NodeDrain | None:
        if self.target is None or self.drains is None or self.volume_ids is None:
            return None
        return NodeDrain(
            self.control,
            self.target,
            self.drains,
            volume_ids=self.volume_ids,
            backoff=self.memory.backoff,
            drains=self.memory.drains,
            random=self.random,
            metrics=self.metrics,
            telling=self.drain_telling,
        )

    def _node_object(
        self, record: DeletionRecord, out_of_service: OutOfService | None
    ) -> NodeObjectDeletion:
        target, under_way = self.target, self.memory.detachments_after_vm
        if target is None or out_of_service is None:
            return NodeObjectDeletion(None, record, None)
        volumes = VolumesAfterVM(self.control, target, record, under_way, out_of_service)
        return NodeObjectDeletion(target, record, volumes)

    def _deletion(self, tokens: BootstrapTokens | None) -> Deletion:
        control, target, memory = self.control, self.target, self.memory
        provider, places = self.provider, memory.places
        record = DeletionRecord(control, memory.backoff, memory.unwritable_node_names)
        condition = TerminatingCondition(control, target)
        telling = DeletionTelling(record, condition)
        search = NodeNameSearch(control, target, record, telling, provider=provider, places=places)
        drain = DrainBeforeDeletion(control, target, record, condition, self._drain())
        vm = VMDeletion(
            control,
            record,
            telling,
            provider=provider,
            places=places,
            metrics=self.metrics,
            deleted=memory.deleted_vms,
        )
        out_of_service = OutOfService(control, target) if target is not None else None
        detach = VolumeDetachment(control, target, record, memory.detachments, out_of_service)
        steps = {
            DeletionStep.FIND_NODE: search.find,
            DeletionStep.DRAIN: drain.drain,
            DeletionStep.DETACH_VOLUMES: detach.detach,
            DeletionStep.DELETE_VM: vm.delete,
            DeletionStep.DELETE_NODE: self._node_object(record, out_of_service).delete,
            DeletionStep.REMOVE_FINALIZER: Release(
                control, record, tokens, memory.token_failures
            ).release,
        }
        return Deletion(target, record, telling, steps=steps)
