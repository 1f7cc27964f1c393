from __future__ import annotations

import pytest

from tests.envtest.bench import Bench, Document


def _lease(**spec: object) -> Document:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": spec,
    }


def _path(api: Bench, name: str = "") -> str:
    return api.path("leases", name, group="coordination.k8s.io/v1")


async def test_microseconds_survive(api: Bench) -> None:
    spec: Document = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "acquireTime": "2026-01-01T00:00:00.000001Z",
        "renewTime": "2026-01-01T00:00:00.123456Z",
    }
    await api.create(_path(api), _lease(**spec))
    assert (await api.get(_path(api, "l")))["spec"] == spec


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("2026-01-01T00:00:00.100000Z", "2026-01-01T00:00:00.100000Z"),
        ("2026-01-01T02:00:00.100000+02:00", "2026-01-01T00:00:00.100000Z"),
    ],
)
async def test_a_micro_time_is_kept_in_utc_with_six_digits(
    api: Bench, sent: str, kept: str
) -> None:
    created = await api.create(_path(api), _lease(renewTime=sent))
    assert created["spec"]["renewTime"] == kept


@pytest.mark.parametrize("sent", ["2026-01-01", "yesterday", 7])
async def test_what_is_no_time_is_a_bad_request(api: Bench, sent: object) -> None:
    answer = await api.send("POST", _path(api), _lease(renewTime=sent))
    assert (answer.status, answer.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds"),
        ({"leaseTransitions": -1}, "spec.leaseTransitions"),
    ],
)
async def test_numbers_that_make_no_sense_are_invalid(
    api: Bench, spec: dict[str, int], field: str
) -> None:
    answer = await api.send("POST", _path(api), _lease(**spec))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", field)]


async def test_of_two_contenders_one_gets_the_lease(api: Bench) -> None:
    free = await api.create(_path(api), _lease(holderIdentity=""))
    free["spec"]["holderIdentity"] = "one"
    await api.put(_path(api, "l"), free)
    free["spec"]["holderIdentity"] = "two"
    answer = await api.send("PUT", _path(api, "l"), free)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert (await api.get(_path(api, "l")))["spec"]["holderIdentity"] == "one"
