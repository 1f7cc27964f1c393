"""What a run found, in the form in which it is kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.clusters.raw_rates import RawRates


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from a watch event to the watch event of the write that answers it."""

    count: int
    p50: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase, all numbers of it alone.

    ``machines``: how many it was about (created, replaced, deleted), which is what ``…_a_machine``
    is divided by. ``seconds``: until all of them were as they should be. Writes are counted until
    nothing more was written; ``writes`` has all that the server answered, but for the bench's own,
    by kind. *Own* are those of the manager but for events; refused ones are among them. *All* are
    anybody's, so also the Nodes of kubelets.
    ``cpu_seconds`` are the manager's, ``cpu_seconds_until_done`` those of all three who share the
    machine (the server's are 0 if it is not ours): what is left of its cores nobody made use of.
    ``requests``: anybody's until it was done, watches and lists left out.
    ``efficiency``: the seconds the server needs for all requests of the phase at its raw rates, by
    those that it took, both up to ``seconds``. ``queue_depth``: seconds since the beginning, and
    keys that wait.
    """

    name: str
    machines: int
    seconds: float
    writes: Mapping[str, int]
    reads: Mapping[str, int]
    own_writes: int
    own_writes_a_machine: float
    events_a_machine: float
    all_writes_a_machine: float
    refused: int
    requests: int
    writes_a_second: float
    cpu_seconds: float
    cpu_milliseconds_a_machine: float
    cpu_seconds_until_done: Mapping[str, float]
    peak_resident_bytes: int
    efficiency: float | None
    event_to_write: Delays | None
    reactions: Mapping[str, Delays]
    queue_depth: Sequence[tuple[float, int]]


@dataclass(frozen=True, slots=True)
class Run:
    """One manager with one fleet at one server. ``raw_rates`` are those of before and after."""

    manager: str
    machines: int
    server: str
    server_version: str
    start_seconds: float
    start_cpu_seconds: float
    phases: Sequence[Phase]
    cpu_seconds: float
    peak_resident_bytes: int
    raw_rates: RawRates | None = None
    raw_rates_measured: Sequence[RawRates] = field(default=())
    remarks: Sequence[str] = field(default=())
    failure: str = ""
    """Why it ended before the last phase."""
