from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Secret
from mcm.api.machine import LastOperation, Machine, MachineStatus
from mcm.api.meta import ObjectMeta
from mcm.informers.versions import comparable, newer, same_content


@pytest.mark.parametrize("version", ["", "0", "007", "12a", "-1", "²", "٣", " 1", "1.0"])
def test_only_decimal_numbers_without_leading_zero_compare(version: str) -> None:
    assert not comparable(version)
    assert not newer(version, "5")
    assert not newer("5", version)


@given(st.integers(1, 10**40), st.integers(1, 10**40))
def test_versions_of_any_length_order_like_the_numbers_they_are(one: int, other: int) -> None:
    assert newer(str(one), str(other)) == (one > other)


def test_states_that_differ_only_in_their_version_have_the_same_content() -> None:
    one = Machine(metadata=ObjectMeta(name="a", resource_version="1", labels={"x": "y"}))
    other = Machine(metadata=ObjectMeta(name="a", resource_version="2", labels={"x": "y"}))
    assert same_content(one, other)


@pytest.mark.parametrize("field", [f for f in ObjectMeta.__struct_fields__ if "version" not in f])
def test_every_other_field_of_the_metadata_counts(field: str) -> None:
    plain = Machine(metadata=ObjectMeta())
    values: dict[str, object] = {
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "generation": 1,
        "finalizers": ("f",),
        "owner_references": (1,),
    }
    changed = msgspec.structs.replace(plain.metadata, **{field: values.get(field, "x")})
    assert not same_content(plain, Machine(metadata=changed))


def test_status_and_type_count() -> None:
    meta = ObjectMeta(name="a")
    changed = MachineStatus(last_operation=LastOperation(state="Failed"))
    assert not same_content(Machine(metadata=meta), Machine(metadata=meta, status=changed))
    assert not same_content(Machine(metadata=meta), Secret(metadata=meta))
