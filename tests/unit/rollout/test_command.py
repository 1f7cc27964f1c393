"""``mcm rollout`` against an API server in this process, where nobody else moves anything."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from mcm.api.crds import crd_manifests
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource
from mcm.cli import main
from mcm.client.client import Client
from mcm.client.errors import ConnectionRefused
from mcm.client.transport import Request, Response, StreamResponse
from mcm.clock import SystemClock
from mcm.cluster_commands.connecting import Connected
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.cluster import create_all
from mcm.sandbox.loopback import LoopbackTransport

VERSION = MACHINE_DEPLOYMENTS.api_version
CALLED = "machinedeployment.machine.sapcloud.io/pool"
QUOTED = 'machinedeployments.machine.sapcloud.io "pool"'


class Recorded:
    """A transport that notes what is asked; requests for which there is a refusal get that."""

    def __init__(self, server: ApiServer) -> None:
        self._inner = LoopbackTransport(server)
        self.asked: list[tuple[str, str]] = []
        self.refusals: dict[str, Response | Exception] = {}

    async def request(self, request: Request) -> Response:
        self.asked.append((request.method, request.path))
        for ending, refusal in self.refusals.items():
            if request.path.endswith(ending):
                if isinstance(refusal, Exception):
                    raise refusal
                return refusal
        return await self._inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[StreamResponse]:
        self.asked.append((request.method, request.path))
        return self._inner.stream(request)

    async def aclose(self) -> None:
        """Each command has its own connection; here all share one server."""


class Shell:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = ApiServer(clock=SystemClock(), random=random.Random(1))
        self.transport = Recorded(self.server)
        monkeypatch.setattr("mcm.rollout.session.connect", self._connect)

    def _connect(self, kubeconfig: Path | None, **options: object) -> Connected:
        return Connected(Client(self.transport, clock=SystemClock(), budget=0.5), "ns")

    def apply(self, manifests: Iterable[JSONObject]) -> None:
        asyncio.run(self._apply([*manifests]))

    async def _apply(self, manifests: Sequence[JSONObject]) -> None:
        await create_all(self.server, manifests)
        for made in manifests:
            if made["kind"] == "Machine":
                await self.report(MACHINES, made["metadata"]["name"], made["status"])  # type: ignore[index]

    async def report(self, resource: Resource[KubeObject], name: str, status: object) -> None:
        client = Client(LoopbackTransport(self.server), clock=SystemClock())
        change = {"status": status}
        await client.patch(resource, name, change, namespace="ns", subresource="status")

    def __call__(self, *arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(main, ["rollout", *arguments], input=stdin)

    def succeeds(self, *arguments: str, stdin: str = "") -> str:
        result = self(*arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result.stdout

    def fails(self, *arguments: str, code: int = 1) -> str:
        """Run what must fail, in one line on standard error; return that."""
        result = self(*arguments)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        if code == 1:
            assert result.stderr.startswith("mcm: ") and result.stderr.count("\n") == 1
        return result.stderr

    def deployment(self) -> JSONObject:
        (raw,) = self.server.objects(MACHINE_DEPLOYMENTS.group, MACHINE_DEPLOYMENTS.plural)
        return raw


def template(class_name: str, **metadata: object) -> JSONObject:
    class_ = {"apiGroup": "machine.sapcloud.io", "kind": "MachineClass", "name": class_name}
    return {"metadata": {"labels": {"name": "pool"}, **metadata}, "spec": {"class": class_}}


def manifest(class_name: str = "class-b", **spec: object) -> JSONObject:
    return {
        "apiVersion": VERSION,
        "kind": "MachineDeployment",
        "metadata": {"name": "pool", "namespace": "ns", "uid": "pool-uid"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"name": "pool"}},
            "template": template(class_name),
            **spec,
        },
    }


def machine_set(name: str, class_name: str, revision: int, replicas: int) -> JSONObject:
    labels = {"name": "pool", "machine-template-hash": str(revision)}
    made = template(class_name)
    made["metadata"] = {"labels": labels}
    annotations = {
        "deployment.kubernetes.io/revision": str(revision),
        "deployment.kubernetes.io/desired-replicas": "2",
        "deployment.kubernetes.io/max-replicas": "3",
        "kubernetes.io/change-cause": f"because of {revision}",
    }
    return {
        "apiVersion": VERSION,
        "kind": "MachineSet",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": made},
    }


def machine(name: str, set_revision: int, class_name: str) -> JSONObject:
    labels = {"name": "pool", "machine-template-hash": str(set_revision)}
    return {
        "apiVersion": VERSION,
        "kind": "Machine",
        "metadata": {"name": name, "namespace": "ns", "labels": labels},
        "spec": template(class_name)["spec"],
        "status": {"currentStatus": {"phase": "Running"}},
    }


def machine_class(name: str) -> JSONObject:
    return {
        "apiVersion": VERSION,
        "kind": "MachineClass",
        "metadata": {"name": name, "namespace": "ns"},
        "providerSpec": {},
    }


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A server that knows no machines."""
    return Shell(monkeypatch)


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A server with a deployment, one empty old set, and a new one with two machines."""
    bare.apply(crd_manifests())
    bare.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}])
    bare.apply(map(machine_class, ("class-a", "class-b")))
    bare.apply(
        [
            manifest(),
            machine_set("pool-old", "class-a", 1, 0),
            machine_set("pool-new", "class-b", 2, 2),
            machine("pool-new-1", 2, "class-b"),
            machine("pool-new-2", 2, "class-b"),
        ]
    )
    return bare


# ---- which deployment ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "pool",
        "mcd/pool",
        "machinedeployment/pool",
        "machinedeployments/pool",
        "machinedeployment.machine.sapcloud.io/pool",
    ],
)
def test_a_deployment_is_named_as_for_kubectl(shell: Shell, name: str) -> None:
    assert shell.succeeds("pause", name) == f"{CALLED} paused\n"


def test_other_kinds_are_errors_of_use(shell: Shell) -> None:
    assert "is no MachineDeployment" in shell.fails("status", "machineset/pool", code=2)
    assert "is no MachineDeployment" in shell.fails("plan", "mcd/", code=2)


@pytest.mark.parametrize("command", ["status", "history", "undo", "pause", "restart", "plan"])
def test_what_is_not_there_is_one_line(shell: Shell, command: str) -> None:
    assert "in namespace elsewhere" in shell.fails(command, "pool", "-n", "elsewhere")


@pytest.mark.parametrize("command", ["status", "history", "resume", "plan"])
def test_a_server_without_the_kinds_says_what_to_install(bare: Shell, command: str) -> None:
    assert "`mcm crds` prints it" in bare.fails(command, "pool")


@pytest.mark.parametrize("command", ["status", "history", "undo", "restart", "plan"])
def test_no_server_and_no_permission_are_one_line(shell: Shell, command: str) -> None:
    shell.transport.refusals["/pool"] = ConnectionRefused("nothing listens on port 1")
    assert "nothing listens" in shell.fails(command, "pool")
    forbidden = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no, you"}
    shell.transport.refusals["/pool"] = Response(403, {}, orjson.dumps(forbidden))
    assert "no, you" in shell.fails(command, "pool")


# ---- changes -------------------------------------------------------------------------------------


def test_pause_and_resume(shell: Shell) -> None:
    assert shell.succeeds("pause", "pool") == f"{CALLED} paused\n"
    assert shell.deployment()["spec"]["paused"] is True  # type: ignore[index]
    assert shell.fails("pause", "pool") == f"mcm: {QUOTED} is already paused\n"
    assert "resume" in shell.fails("undo", "pool")
    assert "resume" in shell.fails("restart", "pool")
    assert shell.succeeds("resume", "pool") == f"{CALLED} resumed\n"
    assert "paused" not in shell.deployment()["spec"]  # type: ignore[operator]
    assert shell.fails("resume", "pool") == f"mcm: {QUOTED} is not paused\n"


def test_restart_leaves_the_class_as_it_is(shell: Shell) -> None:
    assert shell.succeeds("restart", "pool") == f"{CALLED} restarted\n"
    after = shell.deployment()["spec"]["template"]  # type: ignore[index]
    assert list(after["metadata"]["annotations"]) == ["machine.sapcloud.io/restartedAt"]
    assert after["spec"] == template("class-b")["spec"]


def test_undo_goes_back_and_forth(shell: Shell) -> None:
    dry = shell.succeeds("undo", "pool", "--dry-run")
    assert dry.startswith(f"{CALLED} rolled back to revision 1 (dry run)\n")
    assert "name: class-a" in dry
    assert _class(shell) == "class-b"
    assert shell.succeeds("undo", "pool") == f"{CALLED} rolled back to revision 1\n"
    assert _class(shell) == "class-a"
    assert "skipped rollback (current template already matches revision 1)" in shell.succeeds(
        "undo", "pool", "--to-revision=1"
    )
    assert "no revision 7 (there are: 1, 2)" in shell.fails("undo", "pool", "--to-revision=7")
    shell.succeeds("undo", "pool", "--to-revision=2")
    assert _class(shell) == "class-b"


def _class(shell: Shell) -> str:
    spec = shell.deployment()["spec"]
    return str(spec["template"]["spec"]["class"]["name"])  # type: ignore[index]


def test_a_change_that_was_overtaken_is_computed_anew(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = shell.transport.request
    overtaken = 0

    async def meddled(sent: Request) -> Response:
        nonlocal overtaken
        if sent.method == "PATCH" and overtaken < 2:
            overtaken += 1
            client = Client(LoopbackTransport(shell.server), clock=SystemClock())
            await client.patch(
                MACHINE_DEPLOYMENTS, "pool", {"spec": {"replicas": overtaken}}, namespace="ns"
            )
        return await request(sent)

    monkeypatch.setattr(shell.transport, "request", meddled)
    shell.succeeds("undo", "pool")
    shell.succeeds("pause", "pool")
    assert overtaken == 2
    spec = shell.deployment()["spec"]
    assert (_class(shell), spec["replicas"], spec["paused"]) == ("class-a", 2, True)  # type: ignore[index]


# ---- history -------------------------------------------------------------------------------------


def test_history_is_a_table_of_revisions(shell: Shell) -> None:
    head, titles, first, second = shell.succeeds("history", "pool").splitlines()
    assert head == CALLED
    assert titles.split() == ["REVISION", "SET", "MACHINES", "AGE", "CHANGE-CAUSE"]
    assert first.split(maxsplit=4)[:3] == ["1", "pool-old", "0"]
    assert first.endswith("because of 1")
    assert second.split()[:3] == ["2*", "pool-new", "2"]
    listed = json.loads(shell.succeeds("history", "pool", "-o", "json"))
    assert [r["machineClass"] for r in listed] == ["class-a", "class-b"]


def test_history_of_a_revision_shows_what_differs(shell: Shell) -> None:
    text = shell.succeeds("history", "pool", "--revision=1")
    assert "  -    name: class-b\n" in text
    assert "  +    name: class-a\n" in text
    assert "This is the present template." in shell.succeeds("history", "pool", "--revision=2")
    assert "(there are: 1, 2)" in shell.fails("history", "pool", "--revision=3")


# ---- status --------------------------------------------------------------------------------------


def _report(shell: Shell, **status: object) -> None:
    counts = {"observedGeneration": 99, "updatedReplicas": 1, "replicas": 3} | status

    asyncio.run(shell.report(MACHINE_DEPLOYMENTS, "pool", counts))


def test_status_without_watching_looks_once(shell: Shell) -> None:
    shell.apply([{**machine("pool-new-3", 2, "class-b"), "status": BROKEN}])
    _report(shell)
    assert shell.succeeds("status", "pool", "--watch=false") == (
        'Waiting for deployment "pool" rollout to finish: '
        "1 out of 2 new machines have been updated...\n"
        "  pool-new-3: CrashLoopBackOff [ResourceExhausted]: no quota\n"
    )


BROKEN: JSONObject = {
    "currentStatus": {"phase": "CrashLoopBackOff"},
    "lastOperation": {
        "description": "no quota",
        "errorCode": "ResourceExhausted",
        "state": "Failed",
        "type": "Create",
    },
}


def test_status_ends_when_it_is_done(shell: Shell) -> None:
    _report(shell, updatedReplicas=2, replicas=2, availableReplicas=2)
    assert shell.succeeds("status", "pool") == 'deployment "pool" successfully rolled out\n'


def test_status_ends_with_the_reason_and_the_machines_that_cannot_be_made(shell: Shell) -> None:
    shell.apply([{**machine("pool-new-3", 2, "class-b"), "status": BROKEN}])
    condition = {
        "type": "Progressing",
        "status": "False",
        "reason": "ProgressDeadlineExceeded",
        "message": "it has timed out",
    }
    _report(shell, conditions=[condition])
    result = shell("status", "pool")
    assert result.exit_code == 1
    assert result.stderr == (
        "  pool-new-3: CrashLoopBackOff [ResourceExhausted]: no quota\n"
        'mcm: deployment "pool" exceeded its progress deadline (it has timed out)\n'
    )


def test_status_waits_no_longer_than_it_may(shell: Shell) -> None:
    _report(shell)
    result = shell("status", "pool", "--timeout=300ms")
    assert result.exit_code == 1
    assert result.stdout.startswith("Waiting for deployment")
    assert result.stderr == "mcm: timed out waiting for the rollout to finish\n"


def test_status_does_without_what_may_not_be_read(shell: Shell) -> None:
    forbidden = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no"}
    for plural in ("/machines", "/machinesets"):
        shell.transport.refusals[plural] = Response(403, {}, orjson.dumps(forbidden))
    _report(shell, updatedReplicas=2, replicas=2, availableReplicas=2)
    for watch in ("true", "false"):
        assert "successfully" in shell.succeeds("status", "pool", f"--watch={watch}")


# ---- plan ----------------------------------------------------------------------------------------


PLANS = [
    ("pool",),
    ("pool", "--set-class=class-a"),
    ("pool", "--replicas=5", "-o", "json"),
    ("pool", "--restart", "--new-machines-fail"),
    ("pool", "--to-revision=0"),
]


@pytest.mark.parametrize("arguments", PLANS)
def test_a_plan_only_reads(shell: Shell, arguments: tuple[str, ...]) -> None:
    before = shell.server.objects(MACHINE_DEPLOYMENTS.group, MACHINE_DEPLOYMENTS.plural)
    shell.succeeds("plan", *arguments)
    assert {method for method, _ in shell.transport.asked} == {"GET"}
    assert before == [shell.deployment()]


def test_a_plan_names_the_machines_that_go(shell: Shell) -> None:
    shown = json.loads(shell.succeeds("plan", "pool", "--set-class=class-a", "-o", "json"))
    assert [s["sets"][0]["name"] for s in shown["steps"]][:2] == ["pool-old", "pool-new"]
    named = [name for s in shown["steps"] for d in s["deletes"] for name in d["machines"]]
    assert sorted(named) == ["pool-new-1", "pool-new-2"]
    assert shown["outcome"] == "complete"


def test_a_plan_of_a_manifest_is_that_of_its_application(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "pool.json"
    file.write_bytes(orjson.dumps(manifest("class-a", strategy={"type": "Recreate"})))
    shown = json.loads(shell.succeeds("plan", "-f", str(file), "-o", "json"))
    assert [[(r["before"], r["after"]) for r in s["sets"]] for s in shown["steps"]] == [
        [(2, 0)],
        [(0, 2)],
    ]


def test_a_plan_of_a_dump_asks_nobody(shell: Shell) -> None:
    dump = {"kind": "List", "items": [manifest("class-a", paused=True)]}
    text = orjson.dumps(dump).decode()
    shown = shell.succeeds("plan", "--from", "-", "--resume", stdin=text)
    assert "Complete after 1 step." in shown
    assert shell.transport.asked == []


def test_a_plan_warns_of_a_class_that_is_not_there(shell: Shell) -> None:
    text = shell.succeeds("plan", "pool", "--set-class=class-z")
    assert 'Warning: there is no MachineClass "class-z"' in text
    assert "It goes no further after" in text


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ({"replicas": -1}, "spec.replicas"),
        ({"strategy": {"type": "Sideways"}}, "spec.strategy.type"),
        ({"selector": {"matchLabels": {"name": "other"}}}, "spec.template.metadata.labels"),
    ],
)
def test_what_the_controllers_would_refuse_is_refused(
    shell: Shell, tmp_path: Path, spec: JSONObject, complaint: str
) -> None:
    file = tmp_path / "pool.json"
    file.write_bytes(orjson.dumps(manifest("class-b", **spec)))
    assert complaint in shell.fails("plan", "-f", str(file))


def test_a_plan_of_nothing_is_an_error_of_use(shell: Shell) -> None:
    assert "say which deployment" in shell.fails("plan", code=2)


def test_every_command_explains_itself() -> None:
    runner = CliRunner()
    text = runner.invoke(main, ["rollout", "--help"]).output
    commands: list[str] = ["history", "pause", "plan", "restart", "resume", "status", "undo"]
    for name in commands:
        assert f"\n  {name} " in text
        assert "--namespace" in runner.invoke(main, ["rollout", name, "-h"]).output
