"""Which set is the new one."""

from __future__ import annotations

from mcm.controllers.deployment.fleet import new_set_of
from tests.unit.deployment.objects import deployment, owned_set, template


def test_the_oldest_set_of_the_template_is_the_new_one() -> None:
    sets = [owned_set("b", age=5), owned_set("a", age=9), owned_set("c", of=template("x"), age=99)]
    found = new_set_of(deployment(), sets)
    assert found is sets[1]


def test_of_two_sets_of_one_second_the_name_decides() -> None:
    sets = [owned_set("b"), owned_set("a")]
    assert new_set_of(deployment(), sets) is sets[1]


def test_a_set_that_is_being_deleted_is_not_the_new_one() -> None:
    assert new_set_of(deployment(), [owned_set(deleted=True)]) is None
