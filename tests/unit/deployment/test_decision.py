from __future__ import annotations

from mcm.controllers.deployment.decision import Decision
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.sets.wanted import wanted_sets
from tests.unit.deployment.objects import NOW, deployment, owned_set, template


def test_a_reduction_that_is_withheld_leaves_the_set_wholly_as_it_is() -> None:
    shrinking, growing = owned_set("old", 3, of=template("class-b")), owned_set("new", 1)
    machines = {s.metadata.uid: () for s in (shrinking, growing)}
    snapshot = DeploymentSnapshot.of(deployment(4), [shrinking, growing], machines)
    decision = Decision({"old-uid": 2, "new-uid": 2}, rolling=True).without_reductions(snapshot)
    assert decision == Decision({"new-uid": 2}, rolling=True, withheld=frozenset({"old-uid"}))
    wanted = {a.metadata.name: b for a, b in wanted_sets(snapshot, decision, NOW, marking=False)}
    assert wanted["old"] is shrinking
    assert wanted["new"].spec.replicas == 2
