from __future__ import annotations

from dataclasses import replace

import pytest

from mcm.client.connection import NoCredentials, StaticToken
from tests.envtest.bench import JSON, MERGE, Bench
from tests.envtest.contract.objects import config_map, machine, machine_deployment

GROUP = "machine.sapcloud.io"


async def test_what_is_not_there_is_named(api: Bench) -> None:
    answer = await api.send("GET", api.machines("m"))
    assert answer.status == 404
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'machines.{GROUP} "m" not found',
        "reason": "NotFound",
        "details": {"name": "m", "group": GROUP, "kind": "machines"},
        "code": 404,
    }
    answer = await api.send("GET", api.secrets("s"))
    assert answer.body["message"] == 'secrets "s" not found'
    assert answer.body["details"] == {"name": "s", "kind": "secrets"}


async def test_a_namespace_must_be_there(api: Bench) -> None:
    answer = await api.send("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("c"))
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.body["details"] == {"name": "nowhere", "kind": "namespaces"}
    assert await api.names("/api/v1/namespaces/nowhere/configmaps") == []


@pytest.mark.parametrize(
    "path",
    [
        "/apis/machine.sapcloud.io/v1alpha1/gadgets",
        "/apis/machine.sapcloud.io/v9/machines",
        "/apis/nobody.example/v1",
        "/api/v2",
    ],
)
async def test_a_path_nobody_serves_is_not_found(api: Bench, path: str) -> None:
    assert (await api.send("GET", path)).status == 404


async def test_every_fault_of_an_object_is_a_cause(api: Bench) -> None:
    broken = machine_deployment("d", replicas="three")
    broken["spec"]["template"]["spec"]["class"] = "small"
    answer = await api.send("POST", api.deployments(), broken)
    assert (answer.status, answer.reason) == (422, "Invalid")
    # A real server also complains of what the scale would show.
    assert set(answer.causes) - {("FieldValueInvalid", ".spec.replicas")} == {
        ("FieldValueTypeInvalid", "spec.replicas"),
        ("FieldValueTypeInvalid", "spec.template.spec.class"),
    }
    details = answer.body["details"]
    assert (details["name"], details["group"]) == ("d", GROUP)
    assert details["kind"] == "MachineDeployment"


async def test_a_required_field_is_asked_for(api: Bench) -> None:
    answer = await api.send(
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "x.example.org"},
            "spec": {"group": "example.org", "names": {"plural": "x", "kind": "X"}},
        },
    )
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert ("FieldValueRequired", "spec.scope") in answer.causes


async def test_names_are_checked(api: Bench) -> None:
    answer = await api.send("POST", api.machines(), machine("Not_A_Name"))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueInvalid", "metadata.name")]
    answer = await api.send("POST", api.machines(), machine(""))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.causes == [("FieldValueRequired", "metadata.name")]


async def test_labels_and_annotations_are_checked(api: Bench) -> None:
    answer = await api.send("POST", api.machines(), machine("m", {"a": "not a value"}))
    assert (answer.status, answer.causes) == (422, [("FieldValueInvalid", "metadata.labels")])
    draft = machine("m")
    draft["metadata"]["annotations"] = {"not a key": "x"}
    answer = await api.send("POST", api.machines(), draft)
    assert (answer.status, answer.causes) == (422, [("FieldValueInvalid", "metadata.annotations")])


async def test_a_finalizer_needs_a_qualified_name(api: Bench) -> None:
    draft = machine("m")
    draft["metadata"]["finalizers"] = ["not a name"]
    answer = await api.send("POST", api.machines(), draft)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert [field for _, field in answer.causes] == ["metadata.finalizers"]


@pytest.mark.parametrize("body", [b"{", b"null", b"7", b"[]"])
async def test_what_is_no_object_is_a_bad_request(api: Bench, body: bytes) -> None:
    answer = await api.send("POST", api.machines(), body)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_another_kind_does_not_belong_here(api: Bench) -> None:
    answer = await api.send("POST", api.machines(), config_map("c"))
    assert (answer.status, answer.reason) == (400, "BadRequest")
    answer = await api.send("POST", api.config_maps(), machine("m"))
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_verbs_that_do_not_fit_the_path_are_not_allowed(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c"))
    for method, path in (
        ("PUT", api.config_maps()),
        ("PATCH", api.config_maps()),
        ("POST", api.config_maps("c")),
        ("DELETE", api.machines("m") + "/status"),
    ):
        answer = await api.send(method, path, config_map("c"), media=JSON)
        assert answer.status == 405, (method, path)
        assert answer.reason == "MethodNotAllowed"


async def test_media_types_nobody_reads_are_unsupported(api: Bench) -> None:
    answer = await api.send("POST", api.machines(), machine("m"), media="text/plain")
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")


async def test_media_types_nobody_writes_are_not_acceptable(api: Bench) -> None:
    answer = await api.send("GET", api.machines(), accept="text/html")
    assert (answer.status, answer.reason) == (406, "NotAcceptable")


async def test_unknown_fields_are_dropped_or_refused_as_the_sender_wishes(api: Bench) -> None:
    odd = machine("m", nonsense=1)
    answer = await api.send("POST", api.machines(), odd, fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "spec.nonsense" in answer.body["message"]
    answer = await api.send("POST", api.machines(), odd, fieldValidation="Warn")
    assert answer.status == 201
    assert answer.headers["warning"] == r'299 - "unknown field \"spec.nonsense\""'
    assert "nonsense" not in answer.body["spec"]


async def test_what_belongs_to_others_is_kept_whole(api: Bench) -> None:
    path = api.path("machineclasses", group=f"{GROUP}/v1alpha1")
    provider_spec = {"deep": {"list": [1, {"x": None}, "y"]}, "empty": {}, "float": 1.5}
    made = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "MachineClass",
        "metadata": {"name": "c"},
        "provider": "simulated",
        "providerSpec": provider_spec,
    }
    created = await api.create(path, made)
    assert created["providerSpec"] == provider_spec


async def test_a_patch_may_not_spoil_an_object(api: Bench) -> None:
    await api.create(api.deployments(), machine_deployment("d"))
    answer = await api.send("PATCH", api.deployments("d"), {"spec": {"replicas": "x"}}, media=MERGE)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert ("FieldValueTypeInvalid", "spec.replicas") in answer.causes


async def test_who_does_not_say_who_they_are_is_nobody(api: Bench) -> None:
    for credentials in (NoCredentials(), StaticToken("wrong")):
        spec = replace(api.peer.spec, credentials=credentials)
        stranger = Bench(replace(api.peer, spec=spec), api.namespace)
        try:
            answer = await stranger.send("GET", api.machines())
        finally:
            await stranger.aclose()
        assert (answer.status, answer.reason) == (401, "Unauthorized")
