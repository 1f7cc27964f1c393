from __future__ import annotations

from typing import Any

import pytest

from tests.envtest.bench import MERGE, Bench, Document

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def _new_style(name: str, namespace: str, **changes: Any) -> Document:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "reportingController": "example.org/manager",
        "reportingInstance": "manager-0",
        "action": "Reconcile",
        "reason": "Created",
        "regarding": {"kind": "Machine", "name": "m", "namespace": namespace, "uid": "1"},
        "note": "made a machine",
        "type": "Normal",
        **changes,
    }


def _path(api: Bench, name: str = "") -> str:
    return api.path("events", name, group="events.k8s.io/v1")


async def test_an_event_reads_in_the_old_words_too(api: Bench) -> None:
    await api.create(_path(api), _new_style("e", api.namespace))
    old = await api.get(api.path("events", "e"))
    assert (old["apiVersion"], old["kind"]) == ("v1", "Event")
    assert old["involvedObject"]["name"] == "m"
    assert old["message"] == "made a machine"
    assert old["reportingComponent"] == "example.org/manager"
    assert old["reportingInstance"] == "manager-0"
    assert old["eventTime"] == "2026-01-01T00:00:00.123456Z"
    assert "regarding" not in old and "note" not in old


async def test_an_old_event_reads_in_the_new_words_too(api: Bench) -> None:
    made: Document = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Machine", "name": "m", "namespace": api.namespace},
        "reason": "Created",
        "message": "made a machine",
        "source": {"component": "manager", "host": "h"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 2,
        "type": "Normal",
    }
    await api.create(api.path("events"), made)
    new = await api.get(_path(api, "e"))
    assert (new["apiVersion"], new["note"]) == ("events.k8s.io/v1", "made a machine")
    assert new["regarding"]["name"] == "m"
    assert new["deprecatedSource"] == {"component": "manager", "host": "h"}
    assert new["deprecatedCount"] == 2
    assert new["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"


async def test_a_series_is_counted_by_a_patch(api: Bench) -> None:
    await api.create(_path(api), _new_style("e", api.namespace))
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    after = await api.patch(_path(api, "e"), {"series": series})
    assert after["series"] == series
    assert (await api.get(api.path("events", "e")))["series"] == series


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("eventTime", None),
        ("reportingController", ""),
        ("reportingInstance", ""),
        ("action", ""),
        ("reason", ""),
        ("type", "Odd"),
    ],
)
async def test_a_new_event_must_say_everything(api: Bench, field: str, value: object) -> None:
    event = _new_style("e", api.namespace, **{field: value})
    answer = await api.send("POST", _path(api), event)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert field in {path for _, path in answer.causes}


async def test_events_are_found_by_what_they_are_about(api: Bench) -> None:
    await api.create(_path(api), _new_style("e", api.namespace))
    other = {"kind": "Machine", "name": "other", "namespace": api.namespace}
    await api.create(_path(api), _new_style("f", api.namespace, regarding=other))
    found = await api.names(api.path("events"), fieldSelector="involvedObject.name=m")
    assert found == ["e"]
    found = await api.names(_path(api), fieldSelector="regarding.name=other,reason=Created")
    assert found == ["f"]


_SAID_BY_NOBODY: Document = {
    "eventTime": None,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "source": {},
    "reportingComponent": "",
    "reportingInstance": "",
}


async def test_every_event_has_the_fields_that_people_sort_by(api: Bench) -> None:
    about = {"kind": "Machine", "name": "m", "namespace": api.namespace}
    told = {"metadata": {"name": "old"}, "involvedObject": about, "reason": "R", "message": "hi"}
    await api.create(api.path("events"), told)
    await api.create(_path(api), _new_style("new", api.namespace))
    old, new = await api.get(api.path("events", "old")), await api.get(api.path("events", "new"))
    assert {field: old[field] for field in _SAID_BY_NOBODY} == _SAID_BY_NOBODY
    assert {"firstTimestamp", "lastTimestamp", "source"} <= set(new)
    renamed = await api.get(_path(api, "old"))
    assert (renamed["eventTime"], renamed["deprecatedLastTimestamp"]) == (None, None)
    assert renamed["deprecatedSource"] == {}
    assert not {"reportingController", "reportingInstance"} & set(renamed)
    for path in (api.path("events"), _path(api)):
        assert await api.names(path) == ["new", "old"]  # one storage: each of them once


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("series", {"count": 1, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}, "series.count"),
        ("deprecatedCount", 3, "count"),
        ("deprecatedFirstTimestamp", "2026-01-01T00:00:00Z", "firstTimestamp"),
        ("deprecatedLastTimestamp", "2026-01-01T00:00:00Z", "lastTimestamp"),
        ("deprecatedSource", {"component": "c"}, "source"),
    ],
)
async def test_a_new_event_says_nothing_in_the_old_words(
    api: Bench, field: str, value: object, complaint: str
) -> None:
    answer = await api.send("POST", _path(api), _new_style("e", api.namespace, **{field: value}))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", complaint)]


@pytest.mark.parametrize(
    ("patch", "complaint"),
    [({"note": "other"}, "message"), ({"reason": "Other"}, "reason"), ({"type": "W"}, "type")],
)
async def test_what_was_told_stays_as_it_is(api: Bench, patch: Document, complaint: str) -> None:
    await api.create(_path(api), _new_style("e", api.namespace))
    answer = await api.send("PATCH", _path(api, "e"), patch, media=MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert ("FieldValueInvalid", complaint) in answer.causes
    assert (await api.patch(api.path("events", "e"), {"message": "other"}))["message"] == "other"


async def test_a_table_counts_a_series(api: Bench) -> None:
    series = {"count": 4, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}
    await api.create(_path(api), _new_style("e", api.namespace, series=series))
    for path in (api.path("events"), _path(api)):
        table = await api.get(path, accept=TABLE, includeObject="Object")
        (row,) = table["rows"]
        names = [column["name"] for column in table["columnDefinitions"]]
        cells = dict(zip(names, row["cells"], strict=True))
        assert (cells["Object"], cells["Message"]) == ("machine/m", "made a machine")
        assert cells["Count"] == 4
        assert cells["Source"] == "example.org/manager, manager-0"
