from __future__ import annotations

import re

import pytest

from tests.unit.sandbox_core.workbench import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NODES,
    PODS,
    SECRETS,
    WIDGETS,
    Document,
    Workbench,
    config_map,
    pod,
    widget,
)


def test_a_created_object_is_stamped_and_answered_with_201(api: Workbench) -> None:
    answer = api.send("POST", CONFIG_MAPS, config_map("a", x="y"))
    meta = answer.body["metadata"]
    assert answer.status == 201
    assert answer.headers["content-type"] == "application/json"
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("ConfigMap", "v1")
    assert (meta["name"], meta["namespace"]) == ("a", "default")
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", meta["uid"]
    )
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert int(meta["resourceVersion"]) == api.server.store.revision
    assert api.get(f"{CONFIG_MAPS}/a") == answer.body


def test_what_only_the_server_sets_is_not_taken_from_the_client(api: Workbench) -> None:
    obj = config_map("a")
    obj["metadata"] |= {
        "uid": "mine",
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "deletionTimestamp": "2000-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "generation": 77,
        "selfLink": "/somewhere",
    }
    meta = api.create(CONFIG_MAPS, obj)["metadata"]
    assert meta["uid"] != "mine"
    assert meta["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert not {"deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"} & set(
        meta
    )


def test_kinds_with_a_generation_start_at_one(toys: Workbench) -> None:
    assert toys.create(WIDGETS, widget("w"))["metadata"]["generation"] == 1
    assert toys.create(DEPLOYMENTS, {"metadata": {"name": "d"}})["metadata"]["generation"] == 1
    assert "generation" not in toys.create(NODES, {"metadata": {"name": "n"}})["metadata"]


def test_a_generated_name_has_five_letters_that_form_no_words(api: Workbench) -> None:
    names = {
        api.create(CONFIG_MAPS, {"metadata": {"generateName": "a-"}})["metadata"]["name"]
        for _ in range(50)
    }
    assert len(names) == 50
    assert all(re.fullmatch("a-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_a_long_base_of_a_generated_name_is_cut(api: Workbench) -> None:
    meta = api.create(CONFIG_MAPS, {"metadata": {"generateName": "x" * 80}})["metadata"]
    assert len(meta["name"]) == 63
    assert meta["generateName"] == "x" * 80


def test_a_name_wins_over_a_base_for_one(api: Workbench) -> None:
    meta = api.create(CONFIG_MAPS, {"metadata": {"name": "b", "generateName": "a-"}})["metadata"]
    assert meta["name"] == "b"


def test_the_same_seed_gives_the_same_names_and_uids() -> None:
    def created() -> Document:
        body = Workbench(seed=9).create(CONFIG_MAPS, {"metadata": {"generateName": "a-"}})
        meta: Document = body["metadata"]
        return meta

    assert created() == created()


def test_a_second_object_of_the_name_already_exists(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    answer = api.send("POST", CONFIG_MAPS, config_map("a"))
    assert answer.status == 409
    assert answer.body["reason"] == "AlreadyExists"
    assert answer.body["message"] == 'configmaps "a" already exists'
    assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


def test_names_are_free_in_another_namespace(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("a"))
    api.create("/api/v1/namespaces/kube-system/configmaps", config_map("a"))
    assert api.names("/api/v1/configmaps") == ["a", "a"]


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.", "x" * 254])
def test_a_name_that_is_no_subdomain_is_invalid(api: Workbench, name: str) -> None:
    answer = api.send("POST", CONFIG_MAPS, config_map(name))
    assert answer.status == 422
    (cause,) = answer.body["details"]["causes"]
    assert (cause["field"], cause["reason"]) == ("metadata.name", "FieldValueInvalid")


def test_a_namespace_is_named_by_a_label(api: Workbench) -> None:
    assert api.send("POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}}).status == 422


def test_an_object_needs_a_name(api: Workbench) -> None:
    answer = api.send("POST", CONFIG_MAPS, {"data": {}})
    (cause,) = answer.body["details"]["causes"]
    assert (answer.status, cause["reason"]) == (422, "FieldValueRequired")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "Secret"}, "cannot be handled as a ConfigMap"),
        ({"apiVersion": "apps/v1"}, "does not match the expected API version"),
        ({"metadata": {"name": "a", "namespace": "other"}}, "namespace"),
        ({"metadata": "text"}, "metadata must be an object"),
        ({"metadata": {"name": 5}}, "metadata.name must be a string"),
        ({"metadata": {"name": "a", "labels": {"x": 1}}}, "metadata.labels.x"),
        ({"metadata": {"name": "a", "labels": ["x"]}}, "metadata.labels"),
        ({"metadata": {"name": "a", "finalizers": "x"}}, "metadata.finalizers"),
        ({"metadata": {"name": "a", "ownerReferences": {"a": 1}}}, "metadata.ownerReferences"),
    ],
)
def test_what_cannot_be_meant_is_a_bad_request(
    api: Workbench, change: Document, words: str
) -> None:
    answer = api.send("POST", CONFIG_MAPS, config_map("a") | change)
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")
    assert words in answer.body["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b'"text"',
        b"{a: [}",
        b"? 1\n: 2",
        b"a: 99999999999999999999",
        b"\xff",
    ],
)
def test_a_body_that_is_no_object_is_a_bad_request(api: Workbench, body: bytes) -> None:
    assert api.send("POST", CONFIG_MAPS, body).status == 400


def test_a_body_may_be_yaml(api: Workbench) -> None:
    text = b"metadata: {name: a}\ndata:\n  since: 2026-01-01\n"
    answer = api.send("POST", CONFIG_MAPS, text, media="application/yaml")
    assert answer.body["data"] == {"since": "2026-01-01"}


def test_a_body_of_an_unknown_type_is_refused(api: Workbench) -> None:
    answer = api.send("POST", CONFIG_MAPS, b"x", media="application/vnd.kubernetes.protobuf")
    assert (answer.status, answer.body["reason"]) == (415, "UnsupportedMediaType")


def test_a_body_may_be_only_so_large(api: Workbench) -> None:
    answer = api.send("POST", CONFIG_MAPS, b"x" * (3 * 1024 * 1024 + 1))
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


def test_a_version_must_not_be_set_on_creation(api: Workbench) -> None:
    obj = config_map("a")
    obj["metadata"]["resourceVersion"] = "5"
    answer = api.send("POST", CONFIG_MAPS, obj)
    assert answer.status == 500
    assert "resourceVersion should not be set" in answer.body["message"]


def test_every_wrong_metadata_field_is_named(api: Workbench) -> None:
    obj = config_map("a", labels={"bad key": "x", "good": "bad value"})
    obj["metadata"]["finalizers"] = ["bad finalizer"]
    obj["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1", "controller": True},
        {"apiVersion": "v1", "kind": "Pod", "name": "q", "uid": "", "controller": True},
    ]
    answer = api.send("POST", CONFIG_MAPS, obj)
    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [
        "metadata.labels",
        "metadata.labels",
        "metadata.finalizers",
        "metadata.ownerReferences.uid",
        "metadata.ownerReferences",
    ]


def test_the_namespace_must_exist(api: Workbench) -> None:
    answer = api.send("POST", "/api/v1/namespaces/nowhere/configmaps", config_map("a"))
    assert answer.status == 404
    assert answer.body["message"] == 'namespaces "nowhere" not found'


def test_the_usual_namespaces_exist_from_the_start(api: Workbench) -> None:
    assert api.names("/api/v1/namespaces") == [
        "default",
        "kube-node-lease",
        "kube-public",
        "kube-system",
    ]


def test_a_namespaced_object_cannot_be_created_outside_namespaces(api: Workbench) -> None:
    assert api.send("POST", "/api/v1/configmaps", config_map("a")).status == 405


def test_a_cluster_scoped_object_has_no_namespace(api: Workbench) -> None:
    node = api.create(NODES, {"metadata": {"name": "n", "namespace": "default"}})
    assert "namespace" not in node["metadata"]


def test_a_dry_run_stores_nothing(api: Workbench) -> None:
    before = api.server.store.revision
    body = api.create(CONFIG_MAPS, config_map("a"), dryRun="All")
    assert "uid" in body["metadata"] and "resourceVersion" not in body["metadata"]
    assert api.gone(f"{CONFIG_MAPS}/a")
    assert api.server.store.revision == before


def test_an_unknown_dry_run_is_invalid(api: Workbench) -> None:
    assert api.send("POST", CONFIG_MAPS, config_map("a"), dryRun="Some").status == 422


def test_text_in_a_secret_is_encoded(api: Workbench) -> None:
    secret = api.create(
        SECRETS, {"metadata": {"name": "s"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}
    )
    assert secret["data"] == {"a": "Yg==", "c": "ZA=="}
    assert secret["type"] == "Opaque"
    assert "stringData" not in secret


def test_a_secret_that_is_no_base64_is_not_repeated(api: Workbench) -> None:
    answer = api.send("POST", SECRETS, {"metadata": {"name": "s"}, "data": {"a": "hush!"}})
    assert answer.status == 400
    assert b"hush" not in answer.text


def test_pods_get_the_defaults_that_drains_read(api: Workbench) -> None:
    body = api.create(PODS, {**pod("p"), "status": {"phase": "Running"}})
    assert body["spec"]["terminationGracePeriodSeconds"] == 30
    assert body["spec"]["priority"] == 0
    assert body["status"] == {"phase": "Pending"}


def test_a_pod_takes_its_priority_from_the_class(api: Workbench) -> None:
    api.create(
        "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 9}
    )
    assert api.create(PODS, pod("p", priorityClassName="high"))["spec"]["priority"] == 9
    system = api.create(PODS, pod("q", priorityClassName="system-node-critical"))
    assert system["spec"]["priority"] == 2_000_001_000
    assert api.send("POST", PODS, pod("r", priorityClassName="nope")).status == 403


def test_nodes_register_with_their_status(api: Workbench) -> None:
    node = api.create(NODES, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}})
    assert node["status"] == {"capacity": {"cpu": "1"}}


def test_a_custom_object_is_born_without_status(toys: Workbench) -> None:
    assert "status" not in toys.create(WIDGETS, {**widget("w"), "status": {"phase": "x"}})


def test_a_terminating_namespace_takes_nothing_new(api: Workbench) -> None:
    api.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    api.delete("/api/v1/namespaces/n")
    answer = api.send("POST", "/api/v1/namespaces/n/configmaps", config_map("a"))
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert answer.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


def test_the_writer_owns_the_fields_it_set(api: Workbench) -> None:
    (entry,) = api.create(CONFIG_MAPS, config_map("a", x="y"))["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("tester", "Update")
    (named,) = api.create(CONFIG_MAPS, config_map("b", x="y"), fieldManager="me")["metadata"][
        "managedFields"
    ]
    assert named["manager"] == "me"


def test_ownership_can_be_switched_off(api: Workbench) -> None:
    api.server.settings.managed_fields = False
    assert "managedFields" not in api.create(CONFIG_MAPS, config_map("a"))["metadata"]
