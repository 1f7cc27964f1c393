"""Events are one kind under two groups."""

from __future__ import annotations

from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.workbench import (
    MERGE,
    Document,
    ManualClock,
    Workbench,
    virtual_workbench,
)

OLD = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"


def new_event(name: str = "e") -> Document:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "mcm",
        "reportingInstance": "mcm-0",
        "action": "Create",
        "reason": "Created",
        "regarding": {"kind": "Machine", "name": "m", "namespace": "default"},
        "note": "a machine was made",
        "type": "Normal",
    }


def test_a_new_event_reads_as_an_old_one(api: Workbench) -> None:
    created = api.create(NEW, new_event())
    assert created["apiVersion"] == "events.k8s.io/v1"
    assert created["note"] == "a machine was made"
    old = api.get(f"{OLD}/e")
    assert old["apiVersion"] == "v1"
    assert old["message"] == "a machine was made"
    assert old["involvedObject"]["name"] == "m"
    assert old["reportingComponent"] == "mcm"
    assert old["reportingInstance"] == "mcm-0"
    assert not {"note", "regarding", "reportingController"} & set(old)
    assert old["metadata"] == created["metadata"]
    # As Go writes times that nobody set; kubectl cannot sort by what is not there.
    assert (old["firstTimestamp"], old["lastTimestamp"]) == (None, None)


def test_an_old_event_without_times_has_what_kubectl_sorts_by(api: Workbench) -> None:
    api.create(OLD, {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p"}})
    kept = api.get(f"{OLD}/e")
    assert [kept[f] for f in ("firstTimestamp", "lastTimestamp", "eventTime")] == [None] * 3
    assert [kept[f] for f in ("source", "reportingComponent", "reportingInstance")] == [{}, "", ""]
    before = kept["metadata"]["resourceVersion"]
    assert api.put(f"{OLD}/e", kept)["metadata"]["resourceVersion"] == before


def test_an_old_event_reads_as_a_new_one(api: Workbench) -> None:
    api.create(
        OLD,
        {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p"},
            "message": "hello",
            "source": {"component": "kubelet"},
            "count": 3,
            "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:01Z",
        },
    )
    new = api.get(NEW)["items"][0]
    assert new["regarding"] == {"kind": "Pod", "name": "p"}
    assert new["note"] == "hello"
    assert new["deprecatedSource"] == {"component": "kubelet"}
    assert new["deprecatedCount"] == 3
    assert new["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"
    assert new["deprecatedLastTimestamp"] == "2026-01-01T00:00:01Z"


def test_a_series_can_be_patched_through_either_group(api: Workbench) -> None:
    api.create(NEW, new_event())
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    assert api.patch(f"{NEW}/e", series)["series"]["count"] == 2
    assert api.patch(f"{OLD}/e", {"message": "other"})["series"]["count"] == 2
    assert api.get(f"{NEW}/e")["note"] == "other"


def test_events_are_selected_by_what_they_are_about(api: Workbench) -> None:
    api.create(NEW, new_event())
    other = new_event("f")
    other["regarding"]["name"] = "n"
    other["reason"] = "Deleted"
    api.create(NEW, other)
    assert api.names(OLD, fieldSelector="involvedObject.name=m") == ["e"]
    assert api.names(OLD, fieldSelector="involvedObject.kind=Machine,reason=Deleted") == ["f"]
    assert api.names(NEW, fieldSelector="regarding.name=n") == ["f"]
    assert api.names(OLD, fieldSelector="type=Warning") == []
    assert api.send("GET", NEW, fieldSelector="involvedObject.name=m").status == 400


def test_a_watch_speaks_the_version_it_was_asked_in() -> None:
    async def main() -> None:
        api = virtual_workbench()
        old = api.watch(OLD, timeoutSeconds="1")
        new = api.watch(NEW, timeoutSeconds="1")
        api.create(NEW, new_event())
        ((_, as_old),) = await old.rest()
        ((_, as_new),) = await new.rest()
        assert (as_old["apiVersion"], as_old["message"]) == ("v1", "a machine was made")
        assert (as_new["apiVersion"], as_new["note"]) == ("events.k8s.io/v1", "a machine was made")

    run_virtual(main)


def test_a_deleted_event_is_gone_from_both_groups(api: Workbench) -> None:
    api.create(NEW, new_event())
    api.delete(f"{OLD}/e")
    assert api.send("PATCH", f"{NEW}/e", {}, media=MERGE).status == 404


def test_an_apply_through_the_new_group_is_kept_in_the_old_form(api: Workbench) -> None:
    api.patch(f"{NEW}/e", new_event(), media="application/apply-patch+yaml", fieldManager="me")
    assert api.server.objects("", "events")[0]["message"] == "a machine was made"
    again = api.patch(
        f"{NEW}/e", new_event(), media="application/apply-patch+yaml", fieldManager="me"
    )
    assert again["note"] == "a machine was made"


def test_events_are_kept_for_an_hour_after_their_last_write(api: Workbench) -> None:
    assert isinstance(api.clock, ManualClock)
    api.create(NEW, new_event("old"))
    api.create(NEW, new_event("renewed"))
    api.clock.advance(1800)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:30:00.000000Z"}
    api.patch(f"{NEW}/renewed", {"series": series})
    api.clock.advance(1800)
    assert api.names(NEW) == ["old", "renewed"]
    api.create(NEW, new_event("new"))
    assert api.names(NEW) == ["new", "renewed"]
