"""``mcm drain plan``: what it says, that it only reads, and how it ends."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import orjson
import pytest

from mcm.api.core import NODES, PODS
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_DRAIN_RECORD, LABEL_POD_DRAIN
from mcm.api.timestamps import rfc3339
from mcm.client.transport import Response
from mcm.clock import SystemClock
from tests.unit.node_commands.shell import Shell, machine, node
from tests.unit.node_commands.workload import DRIVER, budget, pod, volume


@pytest.fixture
def shell(shell: Shell) -> Shell:
    shell.apply([node()])
    return shell


def planned(shell: Shell, *options: str, code: int = 0) -> JSONObject:
    result = shell("drain", "plan", "node-1", "-o", "json", *options)
    assert result.exit_code == code, (result.output, result.exception)
    made: JSONObject = json.loads(result.stdout)
    return made


def by_pod(plan: JSONObject) -> dict[str, JSONObject]:
    pods = plan["pods"]
    assert isinstance(pods, list)
    return {found["pod"]: found for found in pods}


def seconds_until(plan: JSONObject, moment: object) -> float:
    assert isinstance(moment, str)
    began = datetime.fromisoformat(str(plan["time"]))
    return (datetime.fromisoformat(moment) - began).total_seconds()


def test_an_empty_node_has_nothing_to_do(shell: Shell) -> None:
    said = shell.succeeds("drain", "plan", "node-1")
    assert said == (
        "node node-1: 0 pods to go, 0 to stay\n\nNothing is to be done: no pod has to go.\n"
    )


def test_pods_go_at_once_and_are_gone_after_their_grace(shell: Shell) -> None:
    shell.apply([pod("a", grace=10), pod("b", grace=40), pod("ds", of="DaemonSet"), machine()])
    plan = planned(shell)
    pods = by_pod(plan)
    assert plan["blocked"] is False and plan["machine"] == "ns/m-1"
    assert {name: found["action"] for name, found in pods.items()} == {
        "ns/a": "evicted",
        "ns/b": "evicted",
    }
    assert seconds_until(plan, pods["ns/b"]["goneAt"]) == pytest.approx(40, abs=1.1)
    left = plan["left"]
    assert isinstance(left, list)
    assert [found["pod"] for found in left] == ["ns/ds"]
    assert plan["emptyAfterSeconds"] == pytest.approx(40, abs=1.1)


def test_text_tells_who_goes_when_and_who_stays(shell: Shell) -> None:
    shell.apply([machine(), pod("a", grace=10), pod("ds", of="DaemonSet")])
    said = shell.succeeds("drain", "plan", "mc/m-1", "--timeout", "1h")
    lines = said.splitlines()
    assert lines[0] == "node node-1 of machine ns/m-1: 1 pod to go, 1 to stay"
    assert lines[2].split() == ["POD", "WAVE", "ASKED", "GONE", "WHAT"]
    assert lines[3].split() == ["ns/a", "1", "now", "+10s", "evicted"]
    assert "  ns/ds belongs to a DaemonSet" in lines
    assert "The node is empty after 10s at most." in lines
    assert "Nothing is deleted by force" in lines[-1] and "in 1h0m0s" in lines[-1]


def test_one_allowance_lets_one_pod_go_after_the_other(shell: Shell) -> None:
    shell.apply([budget("b", allowed=1), *(pod(f"web-{n}") for n in range(3))])
    plan = planned(shell)
    pods = by_pod(plan)
    asked = sorted(round(seconds_until(plan, found["askedAt"])) for found in pods.values())
    assert asked == [0, 30, 60]
    held = [found["standing"]["cause"] for found in pods.values() if found["standing"]]  # type: ignore[index]
    assert held.count("held by a disruption budget") == 2


def test_a_misconfigured_budget_blocks_and_is_named_with_what_mends_it(shell: Shell) -> None:
    stuck = budget("tight", app="db", allowed=0, healthy=3, desired=3)
    shell.apply([stuck, pod("db-0", app="db", of="StatefulSet"), pod("web-0")])
    result = shell("drain", "plan", "node-1")
    assert result.exit_code == 3
    text = result.stdout
    assert "What keeps the node from being empty:" in text
    assert "pod disruption budget ns/tight is misconfigured" in text
    assert "It is blocked by 1 pod." in text
    pods = by_pod(planned(shell, code=3))
    assert pods["ns/db-0"]["blocked"] and not pods["ns/web-0"]["blocked"]
    assert pods["ns/db-0"]["askedAt"] is None and pods["ns/db-0"]["goneAt"] is None


def test_a_budget_whose_other_pods_are_ill_blocks_until_they_are_well(shell: Shell) -> None:
    shell.apply([budget("ill", allowed=0, healthy=2, desired=2), pod("web-0")])
    found = by_pod(planned(shell, code=3))["ns/web-0"]["standingAtTheEnd"]
    assert isinstance(found, dict)
    assert found["cause"] == "held by a disruption budget" and "healthy" in str(found["remedy"])


def test_force_says_when_it_comes(shell: Shell) -> None:
    stuck = budget("tight", app="db", allowed=0, healthy=3, desired=3)
    shell.apply([stuck, pod("db-0", app="db"), pod("web-0")])
    plan = planned(shell, "--force", "--timeout", "10m", code=3)
    pods = by_pod(plan)
    assert seconds_until(plan, plan["forcedAt"]) == pytest.approx(600, abs=1.1)
    assert pods["ns/db-0"]["action"] == "deleted by force"
    assert pods["ns/db-0"]["forcedAt"] == plan["forcedAt"]
    assert pods["ns/web-0"]["forcedAt"] is None


def test_force_at_once_deletes_all_now(shell: Shell) -> None:
    stuck = budget("tight", app="db", allowed=0, healthy=3, desired=3)
    shell.apply([stuck, pod("db-0", app="db")])
    plan = planned(shell, "--force", "--timeout", "0s")
    found = by_pod(plan)["ns/db-0"]
    assert found["action"] == "deleted" and seconds_until(plan, found["askedAt"]) == 0


def test_pods_with_volumes_of_one_attacher_go_one_after_the_other(shell: Shell) -> None:
    shell.apply([*volume("one"), *volume("two")])
    shell.apply([pod(f"db-{c}", app="db", of="StatefulSet", claim=c) for c in ("one", "two")])
    plan = planned(shell)
    pods = by_pod(plan)
    first, second = sorted(pods.values(), key=lambda found: str(found["askedAt"]))
    assert seconds_until(plan, first["askedAt"]) == 0
    # Grace, the limit for detaching, and that for attaching elsewhere.
    assert seconds_until(plan, second["askedAt"]) == pytest.approx(30 + 120 + 90, abs=2.1)
    standing = second["standing"]
    assert isinstance(standing, dict)
    assert standing["cause"] == "awaiting the volumes of another pod"
    assert first["volumes"] == [
        {"volume": f"pv-{first['pod'][-3:]}", "claim": f"ns/{first['pod'][-3:]}",  # type: ignore[index]
         "attacher": DRIVER}
    ]  # fmt: skip


def test_waves_wait_for_one_another(shell: Shell) -> None:
    wave: JSONObject = {"machine.sapcloud.io/drain-wave": "5"}
    shell.apply([pod("early", grace=20), pod("late", annotations=wave)])
    plan = planned(shell)
    pods = by_pod(plan)
    assert (pods["ns/early"]["wave"], pods["ns/late"]["wave"]) == (1, 2)
    assert seconds_until(plan, pods["ns/late"]["askedAt"]) == pytest.approx(20, abs=1.1)


def test_who_is_awaited_until_it_completes_blocks(shell: Shell) -> None:
    shell.apply([pod("job", of="Job", labels={LABEL_POD_DRAIN: "wait-completed"})])
    said = shell("drain", "plan", "node-1")
    assert said.exit_code == 3 and "has to complete" in said.stdout


def test_a_pod_that_should_have_ended_long_ago_blocks(shell: Shell) -> None:
    shell.apply([pod("zombie", grace=0, finalizers=["x/y"])])

    async def work() -> None:
        await shell.client.delete(PODS, "zombie", namespace="ns", grace_period_seconds=0)

    import asyncio

    asyncio.run(work())
    found = by_pod(planned(shell, code=3))["ns/zombie"]
    assert found["blocked"] is True


def test_a_pod_of_nobody_is_refused_unless_asked_for(shell: Shell) -> None:
    shell.apply([pod("lonely", of="")])
    said = shell("drain", "plan", "node-1")
    assert said.exit_code == 3 and "--delete-unmanaged" in said.stdout
    assert planned(shell, "--delete-unmanaged")["refused"] is None


def test_a_dead_node_is_told(shell: Shell) -> None:
    shell.apply([pod("web-0")])
    since = rfc3339(SystemClock().now() - timedelta(minutes=10))
    ready = {"type": "Ready", "status": "Unknown", "lastTransitionTime": since}
    shell.patch_node({"status": {"conditions": [ready]}}, subresource="status")
    said = shell("drain", "plan", "node-1")
    assert said.exit_code == 3 and "Without --force nothing is done" in said.stdout
    forced = planned(shell, "--force")
    assert by_pod(forced)["ns/web-0"]["action"] == "deleted"


def test_a_drain_under_way_keeps_its_deadline(shell: Shell) -> None:
    start = SystemClock().now() - timedelta(hours=1)
    record = {"start": rfc3339(start), "deadline": rfc3339(start + timedelta(hours=3))}
    annotations = {ANNOTATION_DRAIN_RECORD: json.dumps(record)}
    shell.patch_node({"metadata": {"annotations": annotations}})
    assert planned(shell)["deadline"] == record["deadline"]
    assert planned(shell, "--timeout", "5m")["deadline"] != record["deadline"]


def test_a_plan_only_reads(shell: Shell) -> None:
    shell.apply([budget("b", allowed=1), *volume("one"), pod("db", claim="one"), pod("web-0")])
    versions = shell.server.objects("", PODS.plural), shell.server.objects("", NODES.plural)
    shell.transport.asked.clear()
    planned(shell)
    planned(shell, "--force")
    assert shell("drain", "node-1", "--dry-run").exit_code == 0
    assert {method for method, _ in shell.transport.asked} == {"GET"}
    assert versions == (
        shell.server.objects("", PODS.plural),
        shell.server.objects("", NODES.plural),
    )


def test_it_reads_what_the_node_has_to_do_with_and_no_more(shell: Shell) -> None:
    shell.apply([*volume("one"), pod("db", claim="one")])
    shell.transport.asked.clear()
    planned(shell)
    assert sorted({path.rpartition("/api")[2] for _, path in shell.transport.asked}) == sorted(
        {
            "/v1/nodes/node-1",
            "s/machine.sapcloud.io/v1alpha1/machines",
            "/v1/pods",
            "s/policy/v1/namespaces/ns/poddisruptionbudgets",
            "/v1/namespaces/ns/persistentvolumeclaims/one",
            "/v1/persistentvolumes/pv-one",
            "s/storage.k8s.io/v1/volumeattachments",
        }
    )


def test_who_may_not_read_budgets_is_told(shell: Shell) -> None:
    shell.apply([pod("web-0")])
    message = 'poddisruptionbudgets.policy is forbidden: User "bob" cannot list resource'
    body = orjson.dumps({"kind": "Status", "reason": "Forbidden", "message": message, "code": 403})
    shell.transport.refusals["poddisruptionbudgets"] = Response(403, {}, body)
    assert shell.fails("drain", "plan", "node-1") == f"mcm: {message}\n"


def test_an_unknown_node_is_one_line(shell: Shell) -> None:
    assert shell.fails("drain", "plan", "nope") == 'mcm: nodes "nope" not found\n'


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "a", "b"),
        ("plan", "pod/x"),
        ("plan", "node-1", "--timeout", "soon"),
        ("plan", "node-1", "--timeout", "0s"),
        ("plan", "node-1", "--timeout=-5s", "--force"),
        ("plan", "node-1", "-o", "xml"),
        ("plan", "node-1", "--all"),
        ("node-1", "--dry-run", "--timeout", "0s"),
        (),
    ],
)
def test_bad_command_lines(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert "Usage: " in shell.fails("drain", *arguments, code=2)
    assert shell.transport.asked == []


def test_help_names_the_commands(shell: Shell) -> None:
    everything = shell.succeeds("--help")
    assert "drain" in everything and "uncordon" in everything
    assert "plan NODE" in shell.succeeds("drain", "--help")
    assert "drain plan [OPTIONS] NODE" in shell.succeeds("drain", "plan", "--help")
