"""Asking the provider what it calls the volumes whose names follow from no rule of Kubernetes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from mcm.api.core import PersistentVolume
from mcm.api.machine import Machine
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.provider import Provider, ProviderFailed
from mcm.driver.codes import Code
from mcm.driver.contract import GetVolumeIDsRequest
from mcm.informers.store import Store

logger = logging.getLogger(__name__)

PATIENCE: Final = 5.0
"""Seconds that one pass of a drain waits for answers, all volumes together."""
RETRY: Final = 60.0
"""Seconds after which a question that failed is asked again."""


@final
@dataclass(frozen=True, slots=True)
class _Answer:
    """What the provider said of one state of a volume. ``ask_again`` in monotonic seconds; None:
    never, the answer holds as long as the volume stays what it is."""

    state: tuple[str, str]
    ids: tuple[str, ...] = ()
    ask_again: float | None = None


@final
class VolumeIds:
    """Answers by PersistentVolume, for the whole process: a volume is asked for once.

    One that the provider does not know, or not in time, has no ID: nobody waits for it then, unless
    an attachment tells of it. One request bears one volume, since answers name none.
    """

    def __init__(
        self, control: ControlCluster, provider: Provider, volumes: Store[PersistentVolume]
    ) -> None:
        self._control = control
        self._provider = provider
        self._volumes = volumes
        self._answers: dict[str, _Answer] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        self._unimplemented = False

    @property
    def known(self) -> Mapping[str, tuple[str, ...]]:
        """IDs by the PersistentVolume's name; what :meth:`learn` learns appears in it."""
        return MappingProxyType(self._known)

    async def learn(self, machine: Machine, wanted: Iterable[PersistentVolume]) -> None:
        """Ask for those ``wanted`` that are not known yet, for a moment at most. Raises only what
        the fence raises, and CancelledError."""
        self._forget_what_is_gone()
        class_ = self._control.class_of(machine)
        if class_ is None or self._unimplemented:
            return
        monotonic = self._control.clock.monotonic
        deadline = monotonic() + PATIENCE
        secret = self._control.credentials(class_).data
        for volume in wanted:
            if not self._is_due(volume, monotonic()):
                continue
            if monotonic() >= deadline or self._unimplemented:
                return
            try:
                response = await self._provider.volume_ids(
                    GetVolumeIDsRequest((volume.spec,)),
                    machine=machine,
                    machine_class=class_,
                    secret=secret,
                    within=deadline - monotonic(),
                )
            except ProviderFailed as failure:
                self._failed(volume, failure, monotonic())
            else:
                self._note(
                    volume, _Answer(_state(volume), tuple(filter(None, response.volume_ids)))
                )

    def _is_due(self, volume: PersistentVolume, now: float) -> bool:
        answer = self._answers.get(volume.metadata.name)
        if answer is None or answer.state != _state(volume):
            return True
        return answer.ask_again is not None and now >= answer.ask_again

    def _failed(self, volume: PersistentVolume, failure: ProviderFailed, now: float) -> None:
        if failure.code is Code.UNIMPLEMENTED:
            self._unimplemented = True
            return
        logger.warning(
            "the provider did not tell a volume's ID",
            extra={"volume": volume.metadata.name, "error": str(failure)},
        )
        self._note(volume, _Answer(_state(volume), ask_again=now + RETRY))

    def _note(self, volume: PersistentVolume, answer: _Answer) -> None:
        name = volume.metadata.name
        self._answers[name] = answer
        if answer.ids:
            self._known[name] = answer.ids
        else:
            self._known.pop(name, None)

    def _forget_what_is_gone(self) -> None:
        for name in [name for name in self._answers if name not in self._volumes]:
            del self._answers[name]
            self._known.pop(name, None)


def _state(volume: PersistentVolume) -> tuple[str, str]:
    return volume.metadata.uid, volume.metadata.resource_version
