"""What validation lets pass can be planned for and reported on, whatever it says."""

from __future__ import annotations

import msgspec
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from mcm.api.machine import (
    DeploymentStrategy,
    InPlaceUpdate,
    Machine,
    MachineDeployment,
    MachineSet,
    MachineSetStatus,
    RollingUpdate,
)
from mcm.api.meta import ObjectMeta
from mcm.api.names import ANNOTATION_DESIRED_REPLICAS, ANNOTATION_MAX_REPLICAS
from mcm.api.validation import validate_machine_deployment
from mcm.controllers.deployment.decision import next_step
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sets.wanted import new_set, wanted_sets
from mcm.controllers.deployment.sizes.bounds import bounds_of
from mcm.controllers.deployment.status.progress import look_again_at
from mcm.controllers.deployment.status.status import status_after
from tests.thoroughness import THOROUGH
from tests.unit.deployment.objects import LABELS, NOW, deployment, owned_set, progressing, template

LARGEST = 2**31 - 1
_replicas = st.sampled_from([0, 1, 2, 3, 4, 5, 10, 1000, 99_999, 100_000, 100_001, -1])
_counts = st.sampled_from([0, 1, 2, 3, 4, 5, 10, 1000, 100_000, LARGEST])
_shares = st.one_of(
    _counts,
    st.integers(0, 12),
    st.integers(0, 12),
    st.sampled_from(["0%", "1%", "25%", "33%", "50%", "100%", "250%", "2147483%", "x%", "7"]),
)
_seconds = st.sampled_from([None, 0, 1, 60, 600, 3600, LARGEST, 2**31])


@st.composite
def deployments(draw: st.DrawFn) -> MachineDeployment:
    surge, unavailable = draw(_shares), draw(_shares)
    kind = draw(st.sampled_from(["", "RollingUpdate", "Recreate", "InPlaceUpdate"]))
    rolling = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    in_place = InPlaceUpdate(
        max_surge=surge,
        max_unavailable=unavailable,
        orchestration_type=draw(st.sampled_from(["Auto", "Manual"])),
    )
    pool = deployment(
        draw(_replicas),
        strategy=DeploymentStrategy(
            type=kind,
            rolling_update=draw(st.sampled_from([rolling, None])),
            in_place_update=in_place,
        ),
        paused=draw(st.booleans()),
        progress_deadline_seconds=draw(_seconds),
    )
    status = msgspec.structs.replace(pool.status, conditions=(progressing("MachineSetUpdated"),))
    spec = msgspec.structs.replace(
        pool.spec,
        min_ready_seconds=draw(_seconds) or 0,
        revision_history_limit=draw(_seconds),
        auto_preserve_failed_machine_max=draw(_counts),
    )
    return msgspec.structs.replace(pool, spec=spec, status=status)


@st.composite
def sets(draw: st.DrawFn) -> MachineSet:
    numbers = st.none() | _counts.map(str) | st.sampled_from(["", "x", "1e9", "-5"])
    annotations = {
        key: value
        for key in (ANNOTATION_DESIRED_REPLICAS, ANNOTATION_MAX_REPLICAS)
        if (value := draw(numbers)) is not None
    }
    held = draw(st.integers(0, 4))
    return owned_set(
        draw(st.sampled_from(["one", "two", "three"])),
        draw(st.sampled_from([0, 1, 3, 100_000])),
        of=template(draw(st.sampled_from(["class-a", "class-b"]))),
        annotations=annotations,
        age=draw(st.sampled_from([0.0, 60.0, 7200.0])),
        status=MachineSetStatus(
            replicas=held, available_replicas=held, ready_replicas=held, observed_generation=1
        ),
    )


def machines_of(machine_set: MachineSet) -> tuple[Machine, ...]:
    name = machine_set.metadata.name
    return tuple(
        Machine(metadata=ObjectMeta(name=f"{name}-{i}", namespace="ns", uid=f"{name}-{i}",
                                    labels=LABELS, creation_timestamp=NOW))
        for i in range(machine_set.status.replicas)
    )  # fmt: skip


@settings(max_examples=1000 if THOROUGH else 150)
@given(pool=deployments(), owned=st.lists(sets(), max_size=3, unique_by=lambda s: s.metadata.name))
def test_what_is_valid_can_be_acted_on(pool: MachineDeployment, owned: list[MachineSet]) -> None:
    valid = not validate_machine_deployment(pool)
    event(f"valid: {valid}")
    assume(valid)
    machines = {s.metadata.uid: machines_of(s) for s in owned}
    snapshot = DeploymentSnapshot.of(pool, owned, machines)
    decision = next_step(snapshot, NOW)
    if decision.create is not None:
        assert 0 <= decision.create <= LARGEST
        made = new_set(pool, owned, replicas=decision.create, bounds=bounds_of(pool.spec))
        assert made.spec.replicas == decision.create
    for _, wanted in wanted_sets(snapshot, decision, NOW, marking=True):
        assert 0 <= wanted.spec.replicas <= LARGEST
    status = status_after(snapshot, decision, NOW, created=decision.create is not None)
    look_again_at(pool, status)
