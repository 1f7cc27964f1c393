from __future__ import annotations

from typing import Any

import pytest

from tests.envtest.bench import Bench, Document
from tests.envtest.contract.objects import pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def _stateful_set(**spec: Any) -> Document:
    labels = {"app": "s"}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "s"},
        "spec": {
            "serviceName": "s",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod("p")["spec"]},
            **spec,
        },
    }


def _path(api: Bench, plural: str = "statefulsets", name: str = "") -> str:
    return api.path(plural, name, group="apps/v1")


@pytest.mark.parametrize(
    ("sent", "strategy"),
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ({"updateStrategy": {"type": "OnDelete"}}, {"type": "OnDelete"}),
        (
            {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
        ),
    ],
)
async def test_what_is_left_out_is_filled_in(api: Bench, sent: Document, strategy: object) -> None:
    spec = (await api.create(_path(api), _stateful_set(**sent)))["spec"]
    assert spec["updateStrategy"] == strategy
    assert spec["replicas"] == 1
    assert spec["podManagementPolicy"] == "OrderedReady"
    assert spec["revisionHistoryLimit"] == 10
    assert spec["persistentVolumeClaimRetentionPolicy"] == {
        "whenDeleted": "Retain",
        "whenScaled": "Retain",
    }


async def test_what_names_and_volumes_are_made_of_stays(api: Bench) -> None:
    await api.create(_path(api), _stateful_set())
    path = _path(api, name="s")
    for change in ({"replicas": 3}, {"minReadySeconds": 5}, {"ordinals": {"start": 2}}):
        assert (await api.patch(path, {"spec": change}))["spec"].items() >= change.items()
    for fixed in ({"serviceName": "other"}, {"podManagementPolicy": "Parallel"}):
        answer = await api.send(
            "PATCH", path, {"spec": fixed}, media="application/merge-patch+json"
        )
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert answer.causes == [("FieldValueForbidden", "spec")]
        assert "fields other than 'replicas'" in answer.body["message"]


async def test_a_revision_says_whose_it_is(api: Bench) -> None:
    owner = (await api.create(_path(api), _stateful_set()))["metadata"]
    reference = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "s",
        "uid": owner["uid"],
        "controller": True,
    }
    meta = {"name": "r", "ownerReferences": [reference]}
    data: Document = {"spec": {"template": {"$patch": "replace"}}}
    await api.create(
        _path(api, "controllerrevisions"), {"metadata": meta, "revision": 3, "data": data}
    )
    table = await api.get(_path(api, "controllerrevisions"), accept=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == [
        "Name",
        "Controller",
        "Revision",
        "Age",
    ]
    assert table["rows"][0]["cells"][:3] == ["r", "statefulset.apps/s", 3]
