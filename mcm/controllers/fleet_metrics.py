"""The fleet in numbers, kept as text: a scrape renders what changed since the last one, no more.

Names, labels and values are those of the Go original. Ten thousand machines are sixty thousand
lines, which the metrics library takes over a second to make, in one piece; nothing else of the
process would run meanwhile. So every object has its lines kept, a change only marks them as old,
and a scrape renders the marked ones in slices between which the loop turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar, final

from prometheus_client.utils import floatToGoString

from mcm.api.machine import (
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    Machine,
    MachineDeployment,
    MachinePhase,
    MachineSet,
)
from mcm.api.meta import T
from mcm.clock import Clock
from mcm.informers.change import Change
from mcm.informers.factory import InformerFactory
from mcm.informers.informer import Informer

SLICE: Final = 100
"""How many objects are rendered in one go: a few milliseconds' worth."""

Sample: TypeAlias = tuple[Mapping[str, str], float]
"""Labels beyond the object's name and namespace, and a value."""

_PHASES: Final[Mapping[str, int]] = {
    MachinePhase.TERMINATING: -4,
    MachinePhase.FAILED: -3,
    MachinePhase.CRASH_LOOP_BACK_OFF: -2,
    MachinePhase.UNKNOWN: -1,
    MachinePhase.PENDING: 0,
    MachinePhase.RUNNING: 1,
}
_CONDITION: Final[Mapping[str, int]] = {"True": 1, "False": 0, "Unknown": 2}

Owner = TypeVar("Owner", MachineSet, MachineDeployment)


@final
@dataclass(frozen=True, slots=True)
class Family(Generic[T]):
    """One metric, and what each object adds to it."""

    name: str
    documentation: str
    samples: Callable[[T], Iterable[Sample]]


# ---- what is shown -------------------------------------------------------------------------------


def _phase(machine: Machine) -> Iterator[Sample]:
    yield {}, _PHASES.get(machine.phase, 0)


def _info(machine: Machine) -> Iterator[Sample]:
    created, class_ = machine.metadata.creation_timestamp, machine.spec.class_
    labels = {
        "createdAt": str(int(created.timestamp())) if created else "",
        "spec_provider_id": machine.spec.provider_id,
        "spec_class_api_group": class_.api_group,
        "spec_class_kind": class_.kind,
        "spec_class_name": class_.name,
        "node_name": machine.node_name,
    }
    yield labels, 1


def _conditions(obj: Machine | MachineSet | MachineDeployment) -> Iterator[Sample]:
    for condition in obj.status.conditions:
        yield {"condition": condition.type}, _CONDITION.get(condition.status, 2)


def _numbers(prefix: str, numbers: Mapping[str, Callable[[Owner], int]]) -> list[Family[Owner]]:
    def family(suffix: str, number: Callable[[Owner], int]) -> Family[Owner]:
        return Family(f"{prefix}_{suffix}", f"{suffix} of the object.", lambda o: [({}, number(o))])

    return [family(suffix, number) for suffix, number in numbers.items()]


_MACHINE: Final[Sequence[Family[Machine]]] = (
    Family(
        "mcm_machine_current_status_phase",
        "Phase: Terminating -4, Failed -3, CrashLoopBackOff -2, Unknown -1, Running 1, else 0.",
        _phase,
    ),
    Family("mcm_machine_info", "Constant 1; the labels describe the machine.", _info),
    Family(
        "mcm_machine_status_condition",
        "Condition of the machine: True 1, False 0, Unknown 2.",
        _conditions,
    ),
)
_SET_NUMBERS: Final[Mapping[str, Callable[[MachineSet], int]]] = {
    "info_spec_replicas": lambda s: s.spec.replicas,
    "status_replicas": lambda s: s.status.replicas,
    "status_available_replicas": lambda s: s.status.available_replicas,
    "status_ready_replicas": lambda s: s.status.ready_replicas,
    "status_fully_labelled_replicas": lambda s: s.status.fully_labeled_replicas,
}
_DEPLOYMENT_NUMBERS: Final[Mapping[str, Callable[[MachineDeployment], int]]] = {
    "info_spec_replicas": lambda d: d.spec.replicas,
    "info_spec_paused": lambda d: int(d.spec.paused),
    "status_replicas": lambda d: d.status.replicas,
    "status_updated_replicas": lambda d: d.status.updated_replicas,
    "status_available_replicas": lambda d: d.status.available_replicas,
    "status_unavailable_replicas": lambda d: d.status.unavailable_replicas,
    "status_ready_replicas": lambda d: d.status.ready_replicas,
}
_STATUS: Final = "Condition: True 1, False 0, Unknown 2."
_SET: Final[Sequence[Family[MachineSet]]] = (
    *_numbers("mcm_machine_set", _SET_NUMBERS),
    Family("mcm_machine_set_status_condition", _STATUS, _conditions),
)
_DEPLOYMENT: Final[Sequence[Family[MachineDeployment]]] = (
    *_numbers("mcm_machine_deployment", _DEPLOYMENT_NUMBERS),
    Family("mcm_machine_deployment_status_condition", _STATUS, _conditions),
)


# ---- how it is kept ------------------------------------------------------------------------------


@final
class FleetMetrics:
    """Listens to the machines, sets and deployments of ``informers`` from now on."""

    def __init__(self, informers: InformerFactory, *, clock: Clock) -> None:
        self._clock = clock
        machines = informers.informer(MACHINES)
        sets = informers.informer(MACHINE_SETS)
        deployments = informers.informer(MACHINE_DEPLOYMENTS)
        self._kept = (
            _Kept(machines, ("mcm_machine_items_total", "Machines"), _MACHINE),
            _Kept(sets, ("mcm_machine_set_items_total", "MachineSets"), _SET),
            _Kept(
                deployments,
                ("mcm_machine_deployment_items_total", "MachineDeployments"),
                _DEPLOYMENT,
            ),
        )

    async def exposition(self) -> Sequence[bytes]:
        """Return the text of all families in Prometheus's format, which holds for OpenMetrics, too.

        Lets the loop turn after each slice. What changes meanwhile may or may not be in it.
        """
        for kept in self._kept:
            for _ in range(0, kept.outdated, SLICE):
                kept.render(SLICE)
                await self._clock.sleep(0)
        return [text for kept in self._kept for text in kept.text()]


@final
class _Kept(Generic[T]):
    """The lines of every object of one resource. What is gone leaves none behind."""

    def __init__(
        self, informer: Informer[T], count: tuple[str, str], families: Sequence[Family[T]]
    ) -> None:
        self._store = informer.store
        self._count, self._what = count
        self._families = families
        self._lines: list[dict[str, bytes]] = [{} for _ in families]
        self._outdated: set[str] = set()
        informer.add_handler(self._note)

    @property
    def outdated(self) -> int:
        """How many objects are to be rendered."""
        return len(self._outdated)

    def _note(self, change: Change[T]) -> None:
        if not change.resync:
            self._outdated.add(change.object.metadata.key)

    def render(self, limit: int) -> None:
        """Bring the lines of up to ``limit`` objects up to date."""
        for _ in range(min(limit, len(self._outdated))):
            key = self._outdated.pop()
            obj = self._store.get(key)
            if obj is None:
                for lines in self._lines:
                    lines.pop(key, None)
                continue
            meta = obj.metadata
            identity = {"name": meta.name, "namespace": meta.namespace}
            for family, lines in zip(self._families, self._lines, strict=True):
                lines[key] = "".join(
                    _line(family.name, {**labels, **identity}, value)
                    for labels, value in family.samples(obj)
                ).encode()

    def text(self) -> Iterator[bytes]:
        """Return one text for each family; the objects' number first."""
        number = _line(self._count, {}, len(self._store))
        yield _head(self._count, f"Number of {self._what}.") + number.encode()
        for family, lines in zip(self._families, self._lines, strict=True):
            yield b"".join((_head(family.name, family.documentation), *lines.values()))


def _head(name: str, documentation: str) -> bytes:
    return f"# HELP {name} {documentation}\n# TYPE {name} gauge\n".encode()


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(labels[label])}"' for label in sorted(labels))
    number: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return f"{name}{{{shown}}} {number}\n" if shown else f"{name} {number}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
