from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.deployment.fleet import new_set_of
from tests.unit.deployment.objects import deployment, owned_set, template
from tests.unit.deployment.states import state


def test_the_oldest_set_of_the_template_is_the_new_one() -> None:
    sets = [owned_set("b", age=5), owned_set("a", age=9), owned_set("c", of=template("x"), age=99)]
    found = new_set_of(deployment(), sets)
    assert found is sets[1]


def test_of_two_sets_of_one_second_the_name_decides() -> None:
    sets = [owned_set("b"), owned_set("a")]
    assert new_set_of(deployment(), sets) is sets[1]


def test_a_set_that_is_being_deleted_is_not_the_new_one() -> None:
    assert new_set_of(deployment(), [owned_set(deleted=True)]) is None


@given(st.lists(st.booleans(), max_size=8), st.integers(0, 12), st.integers(-2, 14), st.data())
def test_a_set_is_reduced_as_by_taking_one_replica_after_the_other(
    serving: list[bool], replicas: int, by: int, data: st.DataObject
) -> None:
    losing = data.draw(st.integers(0, 8))
    subject = state("s", replicas, "".join("R" if s else "." for s in serving))
    left, lost = replicas, 0
    for _ in range(max(0, by)):
        loss = subject.guaranteed(left) - subject.guaranteed(left - 1) if left else 0
        if left == 0 or lost + loss > losing:
            break
        left, lost = left - 1, lost + loss
    assert subject.reduced(replicas, by, losing=losing) == left
    if replicas:
        before, after = subject.guaranteed(replicas), subject.guaranteed(replicas - 1)
        assert subject.loss(replicas) == before - after


def test_a_set_that_is_being_deleted_has_nothing_to_lose() -> None:
    assert state("s", 3, deleted=True).reduced(3, 2) == 1
