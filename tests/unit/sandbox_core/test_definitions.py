from __future__ import annotations

import pytest

from mcm.api.crds import crd_manifests
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    DEFINITIONS,
    JSON,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    virtual_workbench,
    widget,
    widget_definition,
)

PATH = f"{DEFINITIONS}/widgets.toys.example"


def test_a_definition_is_served_at_once(api: Workbench) -> None:
    assert api.send("GET", WIDGETS).status == 404
    body = api.define_widgets()
    conditions = {c["type"]: c["status"] for c in body["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert body["status"]["acceptedNames"]["singular"] == "widget"
    assert body["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert body["status"]["storedVersions"] == ["v1"]
    assert api.get(WIDGETS)["kind"] == "WidgetList"


def test_a_definition_registers_all_it_says(toys: Workbench) -> None:
    info = toys.server.registry.find("toys.example", "v1", "widgets")
    assert info is not None
    assert (info.kind, info.singular, info.list_kind) == ("Widget", "widget", "WidgetList")
    assert info.short_names == ("wd",)
    assert info.subresources == {"status", "scale"}
    assert info.printer_columns[0].json_path == ".spec.size"
    assert info.scale is not None
    assert info.scale.spec_replicas == ".spec.replicas"
    assert info.field_selectors == {"spec.colour": "spec.colour"}
    assert not info.builtin


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"group": "other.example"}, "metadata.name"),
        ({"group": ""}, "spec.group"),
        ({"names": {"plural": "widgets"}}, "spec.names.kind"),
        ({"versions": []}, "spec.versions"),
        (
            {"versions": [{"name": "v1", "served": True, "storage": True}]},
            "spec.versions[0].schema",
        ),
    ],
)
def test_a_definition_that_cannot_be_served_is_invalid(
    api: Workbench, change: Document, field: str
) -> None:
    definition = widget_definition()
    definition["spec"] |= change
    answer = api.send("POST", DEFINITIONS, definition)
    assert answer.status == 422
    assert any(c["field"].startswith(field) for c in answer.body["details"]["causes"])
    assert api.send("GET", WIDGETS).status == 404


def test_a_definition_needs_a_spec(api: Workbench) -> None:
    assert api.send("POST", DEFINITIONS, {"metadata": {"name": "a.b"}}).status == 422
    assert api.send("POST", DEFINITIONS, {"metadata": {"name": "a.b"}, "spec": 1}).status == 400


@pytest.mark.parametrize("change", [{"scope": "Cluster"}, {"group": "x.example"}])
def test_what_objects_hang_on_cannot_change(toys: Workbench, change: Document) -> None:
    answer = toys.send("PATCH", PATH, {"spec": change}, media="application/merge-patch+json")
    assert answer.status == 422


def test_a_changed_definition_is_served_at_once(toys: Workbench) -> None:
    definition = toys.get(PATH)
    version = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [{**version, "subresources": {}}]
    toys.put(PATH, definition)
    toys.create(WIDGETS, {**widget("w"), "status": {"phase": "kept"}})
    assert toys.get(f"{WIDGETS}/w")["status"] == {"phase": "kept"}


def test_versions_show_the_same_objects(toys: Workbench) -> None:
    definition = toys.get(PATH)
    version = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [
        version,
        {**version, "name": "v2", "storage": False},
        {**version, "name": "v3", "storage": False, "served": False},
    ]
    toys.put(PATH, definition)
    toys.create(WIDGETS, widget("w"))
    newer = WIDGETS.replace("v1", "v2")
    assert toys.get(f"{newer}/w")["apiVersion"] == "toys.example/v2"
    assert toys.get(newer)["items"][0]["apiVersion"] == "toys.example/v2"
    body = toys.patch(f"{newer}/w", {"spec": {"size": 8}})
    assert (body["apiVersion"], body["spec"]["size"]) == ("toys.example/v2", 8)
    assert toys.get(f"{WIDGETS}/w")["apiVersion"] == "toys.example/v1"
    assert toys.get(f"{WIDGETS}/w")["spec"]["size"] == 8
    assert toys.send("GET", WIDGETS.replace("v1", "v3")).status == 404
    assert toys.server.objects("toys.example", "widgets")[0]["apiVersion"] == "toys.example/v1"


def test_a_watch_of_another_version_speaks_that_version() -> None:
    async def main() -> None:
        api = virtual_workbench()
        definition = widget_definition()
        (version,) = definition["spec"]["versions"]
        definition["spec"]["versions"] = [version, {**version, "name": "v2", "storage": False}]
        api.create(DEFINITIONS, definition)
        watch = api.watch(WIDGETS.replace("v1", "v2"), timeoutSeconds="1")
        api.create(WIDGETS, widget("w"))
        ((_, obj),) = await watch.rest()
        assert obj["apiVersion"] == "toys.example/v2"

    run_virtual(main)


# Schemas ----------------------------------------------------------------------------------------


def test_objects_are_defaulted(toys: Workbench) -> None:
    assert toys.create(WIDGETS, widget("w"))["spec"] == {"size": 1, "colour": "red"}


def test_every_violation_is_a_cause(toys: Workbench) -> None:
    answer = toys.send("POST", WIDGETS, widget("w", size=-1, colour=5))
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    fields = {cause["field"] for cause in answer.body["details"]["causes"]}
    assert fields == {"spec.size", "spec.colour"}
    assert answer.body["details"]["kind"] == "Widget"
    assert answer.body["message"].startswith('Widget.toys.example "w" is invalid: ')


def test_a_required_field_cannot_be_left_out_or_taken_away(toys: Workbench) -> None:
    obj = widget("w")
    del obj["spec"]["size"]
    assert toys.send("POST", WIDGETS, obj).status == 422
    toys.create(WIDGETS, widget("w"))
    answer = toys.send(
        "PATCH", f"{WIDGETS}/w", {"spec": {"size": None}}, media="application/merge-patch+json"
    )
    assert answer.status == 422


@pytest.mark.parametrize(
    ("validation", "status", "warned"),
    [("", 201, True), ("Warn", 201, True), ("Ignore", 201, False), ("Strict", 400, False)],
)
def test_an_unknown_field_is_dropped_warned_of_or_refused(
    toys: Workbench, validation: str, status: int, *, warned: bool
) -> None:
    query = {"fieldValidation": validation} if validation else {}
    answer = toys.send("POST", WIDGETS, widget("w", shape="round"), **query)
    assert answer.status == status
    assert answer.headers.get("warning") == (
        '299 - "unknown field \\"spec.shape\\""' if warned else None
    )
    if status == 201:
        assert "shape" not in answer.body["spec"]
    else:
        assert answer.body["message"] == (
            'Widget in version "v1" cannot be handled as a Widget: '
            'strict decoding error: unknown field "spec.shape"'
        )


def test_an_unknown_field_at_the_top_is_dropped_too(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    answer = toys.send(
        "PATCH", f"{WIDGETS}/w", {"extra": {"a": 1}}, media="application/merge-patch+json"
    )
    assert "extra" not in answer.body
    assert "extra" in answer.headers["warning"]


def test_an_unknown_validation_is_invalid(toys: Workbench) -> None:
    answer = toys.send("POST", WIDGETS, widget("w"), fieldValidation="Maybe")
    assert answer.status == 422
    assert answer.body["details"]["kind"] == "CreateOptions"


def test_a_custom_object_must_say_what_it_is(toys: Workbench) -> None:
    for field in ("kind", "apiVersion"):
        obj = widget("w")
        del obj[field]
        answer = toys.send("POST", WIDGETS, obj)
        assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
        assert "is missing" in answer.body["message"]
    answer = toys.send("POST", WIDGETS, {**widget("w"), "kind": "Gadget"})
    assert (answer.status, answer.body["details"]["causes"][0]["field"]) == (422, "kind")
    assert (
        toys.send("POST", WIDGETS, {**widget("w"), "apiVersion": "toys.example/v2"}).status == 400
    )


def test_a_status_is_checked_by_the_schema(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    answer = toys.send(
        "PATCH",
        f"{WIDGETS}/w/status",
        {"status": {"replicas": "x"}},
        media="application/merge-patch+json",
    )
    assert answer.status == 422
    assert answer.body["details"]["causes"][0]["field"] == "status.replicas"


def test_an_object_from_before_a_stricter_schema_can_still_be_let_go(toys: Workbench) -> None:
    obj = widget("w", size=5)
    obj["metadata"]["finalizers"] = ["x/y"]
    toys.create(WIDGETS, obj)
    definition = toys.get(PATH)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["size"]["maximum"] = 3
    toys.put(PATH, definition)
    toys.delete(f"{WIDGETS}/w")
    toys.patch(f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
    assert toys.gone(f"{WIDGETS}/w")


# Going ------------------------------------------------------------------------------------------


def test_a_deleted_definition_takes_its_objects_along(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("v"))
    toys.create(WIDGETS, widget("w"))
    toys.delete(PATH)
    assert toys.gone(PATH)
    assert toys.send("GET", WIDGETS).status == 404
    assert toys.server.objects("toys.example", "widgets") == []
    toys.define_widgets()
    assert toys.names(WIDGETS) == []


def test_a_definition_waits_for_objects_that_are_held(toys: Workbench) -> None:
    obj = widget("w")
    obj["metadata"]["finalizers"] = ["x/y"]
    toys.create(WIDGETS, obj)
    toys.create(WIDGETS, widget("v"))
    assert "finalizers" not in toys.get(PATH)["metadata"]
    body = toys.delete(PATH)
    assert "deletionGracePeriodSeconds" not in body["metadata"]
    assert body["metadata"]["generation"] == 1
    assert {c["type"] for c in toys.get(PATH)["status"]["conditions"]} == {
        "NamesAccepted",
        "Established",
        "Terminating",
    }
    assert body["metadata"]["deletionTimestamp"]
    assert toys.names(WIDGETS) == ["w"]
    assert toys.send("POST", WIDGETS, widget("x")).status == 405
    toys.patch(f"{WIDGETS}/w", {"metadata": {"finalizers": None}})
    assert toys.gone(PATH)
    assert toys.send("GET", WIDGETS).status == 404


def test_watches_end_with_their_definition() -> None:
    async def main() -> None:
        api = virtual_workbench()
        api.define_widgets()
        api.create(WIDGETS, widget("w"))
        watch = api.watch(WIDGETS)
        others = api.watch(CONFIG_MAPS)
        api.delete(PATH)
        assert [kind for kind, _ in await watch.rest()] == ["ADDED", "DELETED"]
        api.create(CONFIG_MAPS, config_map("a"))
        assert await others.take(1) == [("ADDED", "a")]
        assert api.clock.monotonic() == 0.0

    run_virtual(main)


def test_the_projects_own_definitions_are_accepted(api: Workbench) -> None:
    for manifest in crd_manifests():
        assert api.send("POST", DEFINITIONS, manifest, media=JSON).status == 201
    assert api.get("/apis/machine.sapcloud.io/v1alpha1/machines")["items"] == []


def test_a_changed_schema_holds_for_the_next_patch(toys: Workbench) -> None:
    toys.create(WIDGETS, widget("w"))
    assert "colour" in toys.patch(f"{WIDGETS}/w", {"spec": {"shape": "round"}})["spec"]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = toys.get(f"{DEFINITIONS}/widgets.toys.example")
    definition["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": anything}
    toys.put(f"{DEFINITIONS}/widgets.toys.example", definition)
    assert toys.patch(f"{WIDGETS}/w", {"spec": {"shape": "round"}})["spec"]["shape"] == "round"
