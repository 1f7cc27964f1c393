from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.sandbox.apiserver.kinds.builtin import BUILTIN_RESOURCES
from mcm.sandbox.apiserver.registry import PrinterColumn, ResourceInfo
from mcm.sandbox.apiserver.tables import columns_of, human_duration, render_table

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)
BY_KIND = {(i.group, i.kind): i for i in BUILTIN_RESOURCES}


def ago(**duration: float) -> str:
    return rfc3339(NOW - timedelta(**duration))


def named(name: str = "x", **rest: object) -> JSONObject:
    return {"metadata": {"name": name, "creationTimestamp": ago(minutes=5)}, **rest}


def shown(info: ResourceInfo, obj: JSONObject) -> dict[str, object]:
    table = render_table(info, [obj], now=NOW)
    definitions = cast(list[JSONObject], table["columnDefinitions"])
    rows = cast(list[JSONObject], table["rows"])
    cells = cast(list[object], rows[0]["cells"])
    return dict(zip((str(d["name"]) for d in definitions), cells, strict=True))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (5, "5s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (4 * 3600 + 60, "4h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (53 * 3600, "2d5h"),
        (8 * 86400 - 1, "7d23h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400 - 1, "729d"),
        (2 * 365 * 86400, "2y"),
        (3 * 365 * 86400 + 2 * 86400, "3y2d"),
        (9 * 365 * 86400 + 86400, "9y"),
    ],
)
def test_durations_get_coarser_with_age(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def widget(*columns: PrinterColumn) -> ResourceInfo:
    return ResourceInfo("example.com", "v1", "widgets", "Widget", printer_columns=columns)


def test_a_custom_resource_without_columns_shows_name_and_age() -> None:
    assert shown(widget(), named()) == {"Name": "x", "Age": "5m"}


def test_a_custom_resources_columns_come_from_its_definition() -> None:
    info = widget(
        PrinterColumn("Replicas", "integer", ".spec.replicas"),
        PrinterColumn("Share", "number", ".spec.share"),
        PrinterColumn("Paused", "boolean", ".spec.paused"),
        PrinterColumn("Ready", "string", '.status.conditions[?(@.type=="Ready")].status'),
        PrinterColumn("Box", "string", ".spec.box"),
        PrinterColumn("Since", "date", ".status.since", priority=1),
        PrinterColumn("Lost", "string", ".spec.lost"),
        PrinterColumn("Broken", "string", ".spec["),
        PrinterColumn("Misfit", "integer", ".spec.box"),
    )
    obj = named(
        spec={"replicas": 3, "share": 1, "paused": False, "box": {"a": [1]}},
        status={"conditions": [{"type": "Ready", "status": "True"}], "since": ago(hours=50)},
    )
    assert shown(info, obj) == {
        "Name": "x",
        "Replicas": 3,
        "Share": 1.0,
        "Paused": False,
        "Ready": "True",
        "Box": '{"a":[1]}',
        "Since": "2d2h",
        "Lost": None,
        "Broken": None,
        "Misfit": None,
    }
    definitions = cast(list[JSONObject], render_table(info, [], now=NOW)["columnDefinitions"])
    assert [d["name"] for d in definitions if d["priority"]] == ["Since"]
    assert definitions[0] == {
        "name": "Name",
        "type": "string",
        "format": "name",
        "description": "The object's name.",
        "priority": 0,
    }


def test_rows_carry_what_the_client_asked_for() -> None:
    obj = named(spec={"a": 1})
    expected = {
        "Metadata": {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": obj["metadata"],
        },
        "Object": obj,
        "None": None,
    }
    for include, embedded in expected.items():
        table = render_table(
            widget(), [obj], now=NOW, include_object=include, list_meta={"resourceVersion": "7"}
        )
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        assert table["metadata"] == {"resourceVersion": "7"}
        assert cast(list[JSONObject], table["rows"])[0].get("object") == embedded


@pytest.mark.parametrize("info", BUILTIN_RESOURCES, ids=lambda i: f"{i.group}.{i.kind}")
def test_no_column_fails_on_an_empty_object_or_one_of_wrong_types(info: ResourceInfo) -> None:
    names = ("metadata", "spec", "status", "data", "involvedObject", "series", "source")
    broken: JSONObject = dict.fromkeys(names, 7)
    odd = {"spec": {"containers": "x", "ports": [1]}, "status": {"conditions": {"a": 1}}}
    for obj in ({}, broken, {**odd, "metadata": {"creationTimestamp": "yesterday"}}):
        assert len(shown(info, obj)) == len(columns_of(info))


def node(**more: object) -> JSONObject:
    return named("n", **more)


@pytest.mark.parametrize(
    ("conditions", "unschedulable", "status"),
    [
        ([{"type": "Ready", "status": "True"}], False, "Ready"),
        ([{"type": "Ready", "status": "False"}], False, "NotReady"),
        ([{"type": "Ready", "status": "Unknown"}], True, "NotReady,SchedulingDisabled"),
        ([], False, "Unknown"),
    ],
)
def test_a_nodes_status_joins_readiness_and_cordon(
    conditions: list[object], unschedulable: bool, status: str
) -> None:
    obj = node(spec={"unschedulable": unschedulable}, status={"conditions": conditions})
    assert shown(BY_KIND["", "Node"], obj)["Status"] == status


def test_a_node_shows_roles_addresses_and_versions() -> None:
    obj = node(
        status={
            "addresses": [
                {"type": "Hostname", "address": "h"},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ],
            "nodeInfo": {"kubeletVersion": "v1.32.0", "osImage": "Linux"},
        }
    )
    cast(JSONObject, obj["metadata"])["labels"] = {
        "node-role.kubernetes.io/worker": "",
        "kubernetes.io/role": "agent",
    }
    assert shown(BY_KIND["", "Node"], obj) == {
        "Name": "n",
        "Status": "Unknown",
        "Roles": "agent,worker",
        "Age": "5m",
        "Version": "v1.32.0",
        "Internal-IP": "10.0.0.1",
        "External-IP": "<none>",
        "OS-Image": "Linux",
        "Kernel-Version": "<unknown>",
        "Container-Runtime": "<unknown>",
    }


RUNNING = {"ready": True, "state": {"running": {}}}
WAITING = {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}


def pod(
    statuses: list[JSONObject], *, init: list[JSONObject] | None = None, **status: object
) -> JSONObject:
    init = init or []
    return named(
        spec={
            "nodeName": "n1",
            "containers": [{"name": str(i)} for i, _ in enumerate(statuses)],
            "initContainers": [{"name": f"i{i}"} for i, _ in enumerate(init)],
        },
        status={
            "phase": "Running",
            "podIPs": [{"ip": "10.1.1.1"}],
            "containerStatuses": statuses,
            "initContainerStatuses": init,
            **status,
        },
    )


@pytest.mark.parametrize(
    ("obj", "ready", "status"),
    [
        (pod([RUNNING, RUNNING]), "2/2", "Running"),
        (pod([RUNNING, WAITING]), "1/2", "CrashLoopBackOff"),
        (pod([{"state": {"terminated": {"exitCode": 3}}}]), "0/1", "ExitCode:3"),
        (pod([{"state": {"terminated": {"signal": 9}}}]), "0/1", "Signal:9"),
        (pod([{"state": {"terminated": {"reason": "Error"}}}]), "0/1", "Error"),
        (
            pod([{"state": {"terminated": {"reason": "Completed"}}}, RUNNING]),
            "1/2",
            "NotReady",
        ),
        (
            pod(
                [{"state": {"terminated": {"reason": "Completed"}}}, RUNNING],
                conditions=[{"type": "Ready", "status": "True"}],
            ),
            "1/2",
            "Running",
        ),
        (pod([RUNNING], init=[{"name": "i0", "state": {"running": {}}}]), "0/1", "Init:0/1"),
        (
            pod([RUNNING], init=[{"state": {"terminated": {"exitCode": 1}}}]),
            "0/1",
            "Init:ExitCode:1",
        ),
        (pod([RUNNING], init=[WAITING]), "0/1", "Init:CrashLoopBackOff"),
        (pod([RUNNING], init=[{"state": {"terminated": {"exitCode": 0}}}]), "1/1", "Running"),
        (pod([], phase="Pending"), "0/0", "Pending"),
        (pod([], phase="Failed", reason="Evicted"), "0/0", "Evicted"),
        (
            pod([], conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            "0/0",
            "SchedulingGated",
        ),
    ],
)
def test_a_pod_is_summed_up_by_its_least_healthy_container(
    obj: JSONObject, ready: str, status: str
) -> None:
    row = shown(BY_KIND["", "Pod"], obj)
    assert (row["Ready"], row["Status"]) == (ready, status)


@pytest.mark.parametrize(
    ("phase", "reason", "status"),
    [("Running", "", "Terminating"), ("Succeeded", "", "Succeeded"), ("Running", "NodeLost", None)],
)
def test_a_pod_being_deleted_says_so_unless_it_has_ended(
    phase: str, reason: str, status: str | None
) -> None:
    obj = pod([], phase=phase, reason=reason)
    cast(JSONObject, obj["metadata"])["deletionTimestamp"] = ago(seconds=1)
    assert shown(BY_KIND["", "Pod"], obj)["Status"] == (status or "Unknown")


def test_restarts_tell_when_the_last_one_was() -> None:
    last = {"terminated": {"finishedAt": ago(seconds=30)}}
    obj = pod([{**RUNNING, "restartCount": 2, "lastState": last}, RUNNING])
    row = shown(BY_KIND["", "Pod"], obj)
    assert row["Restarts"] == "2 (30s ago)"
    assert (row["IP"], row["Node"], row["Nominated Node"]) == ("10.1.1.1", "n1", "<none>")


def test_an_event_reads_the_same_in_both_of_its_forms() -> None:
    core = named(
        involvedObject={"kind": "Machine", "name": "m"},
        type="Warning",
        reason="Failed",
        message="no luck\n",
        firstTimestamp=ago(minutes=10),
        lastTimestamp=ago(seconds=20),
        count=3,
        source={"component": "mcm", "host": "h"},
    )
    regarding = named(
        regarding={"kind": "Machine", "name": "m"},
        type="Warning",
        reason="Failed",
        note="no luck\n",
        eventTime=ago(minutes=10),
        series={"count": 3, "lastObservedTime": ago(seconds=20)},
        reportingController="mcm",
        reportingInstance="h",
    )
    expected = {
        "Last Seen": "20s",
        "Type": "Warning",
        "Reason": "Failed",
        "Object": "machine/m",
        "Subobject": "",
        "Source": "mcm, h",
        "Message": "no luck",
        "First Seen": "10m",
        "Count": 3,
        "Name": "x",
    }
    assert shown(BY_KIND["", "Event"], core) == expected
    assert shown(BY_KIND["events.k8s.io", "Event"], regarding) == expected


@pytest.mark.parametrize(
    ("kind", "obj", "expected"),
    [
        (("", "Namespace"), named(status={"phase": "Active"}), ["x", "Active", "5m"]),
        (("", "Secret"), named(type="Opaque", data={"a": "", "b": ""}), ["x", "Opaque", 2, "5m"]),
        (("", "ConfigMap"), named(data={"a": ""}, binaryData={"b": ""}), ["x", 2, "5m"]),
        (("", "ServiceAccount"), named(), ["x", 0, "5m"]),
        (
            ("coordination.k8s.io", "Lease"),
            named(spec={"holderIdentity": "me"}),
            ["x", "me", "5m"],
        ),
        (
            ("policy", "PodDisruptionBudget"),
            named(spec={"maxUnavailable": "30%"}, status={"disruptionsAllowed": 1}),
            ["x", "N/A", "30%", 1, "5m"],
        ),
        (
            ("", "PersistentVolume"),
            named(
                spec={
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                    "persistentVolumeReclaimPolicy": "Delete",
                    "claimRef": {"namespace": "ns", "name": "c"},
                    "storageClassName": "fast",
                },
                status={"phase": "Bound"},
            ),
            [
                *("x", "1Gi", "RWO,RWX", "Delete", "Bound", "ns/c", "fast", "<unset>", ""),
                *("5m", "<unset>"),
            ],
        ),
        (
            ("", "PersistentVolumeClaim"),
            named(
                spec={"volumeName": "pv"},
                status={
                    "phase": "Bound",
                    "capacity": {"storage": "2Gi"},
                    "accessModes": ["ReadOnlyMany"],
                },
            ),
            ["x", "Bound", "pv", "2Gi", "ROX", "", "<unset>", "5m", "<unset>"],
        ),
        (
            ("storage.k8s.io", "VolumeAttachment"),
            named(
                spec={"attacher": "csi", "nodeName": "n", "source": {"persistentVolumeName": "p"}},
                status={"attached": True},
            ),
            ["x", "csi", "p", "n", True, "5m"],
        ),
        (
            ("storage.k8s.io", "StorageClass"),
            named(provisioner="csi"),
            ["x", "csi", "Delete", "Immediate", False, "5m"],
        ),
        (
            ("apiextensions.k8s.io", "CustomResourceDefinition"),
            named(),
            ["x", ago(minutes=5)],
        ),
        (
            ("apps", "Deployment"),
            named(
                spec={
                    "replicas": 3,
                    "selector": {
                        "matchLabels": {"a": "b"},
                        "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}],
                    },
                    "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
                },
                status={"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
            ),
            ["x", "2/3", 3, 1, "5m", "c", "i", "a=b,c in (d,e)"],
        ),
        (
            ("apps", "ReplicaSet"),
            named(spec={"replicas": 3}, status={"replicas": 2}),
            ["x", 3, 2, 0, "5m", "", "", "<none>"],
        ),
        (
            ("", "Service"),
            named(
                spec={
                    "type": "LoadBalancer",
                    "clusterIP": "10.0.0.1",
                    "ports": [{"port": 80, "nodePort": 30000}, {"port": 53, "protocol": "UDP"}],
                }
            ),
            ["x", "LoadBalancer", "10.0.0.1", "<pending>", "80:30000/TCP,53/UDP", "5m", "<none>"],
        ),
    ],
)
def test_other_built_in_kinds_have_their_columns(
    kind: tuple[str, str], obj: JSONObject, expected: list[object]
) -> None:
    assert list(shown(BY_KIND[kind], obj).values()) == expected
