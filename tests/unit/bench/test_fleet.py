"""The bench of whole fleets: its flags, its cloud, and what it makes of what it sees."""

from __future__ import annotations

import base64
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from bench import fleet
from bench.clusters import namespaces
from bench.clusters.generator import is_whole
from bench.instant import plug_in
from bench.instant.provider import create
from bench.phases.reactions import CREATED, JOINED, Reactions, delays
from mcm.api.core import SECRETS
from mcm.api.machine import MACHINE_CLASSES, Machine, MachineClass, MachineSpec
from mcm.api.meta import ObjectMeta
from mcm.client.client import Client
from mcm.clock import SystemClock
from mcm.controllers.machine.creation.user_data import USER_DATA, needs_token
from mcm.driver import (
    Code,
    CreateMachineRequest,
    DeleteMachineRequest,
    Driver,
    DriverError,
    GetMachineStatusRequest,
    ListMachinesRequest,
    ProviderContext,
)
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport

_CLASS = MachineClass(metadata=ObjectMeta(name="small"))


@pytest.mark.parametrize(
    "flags",
    [
        ["--machines=0"],
        ["--machines=10,x"],
        ["--machines=-3"],
        ["--phases=create,explode"],
        ["--repeat=none"],
        ["--raw-objects=-1"],
        ["--raw-connections=0"],
    ],
)
def test_a_bad_flag_is_named(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        fleet.arguments(flags)
    assert f"argument {flags[0].partition('=')[0]}:" in capsys.readouterr().err


def test_the_short_form_may_be_changed() -> None:
    short = fleet.arguments(["--short"])
    assert short.machines == [300]
    assert fleet.arguments(["--short", "--machines=7,9"]).machines == [7, 9]


def test_tokens_are_made_on_demand_and_the_results_say_whether() -> None:
    for flags, tokens in (
        ([], False),
        (["--short"], False),
        (["--bootstrap-tokens"], True),
        (["--short", "--bootstrap-tokens"], True),
        (["--bootstrap-tokens", "--no-bootstrap-tokens"], False),
    ):
        given = fleet.arguments(flags)
        said = json.loads(fleet.as_json(given, [], []))
        assert said["parameters"]["bootstrap_tokens"] is tokens


@pytest.mark.parametrize("tokens", [True, False])
async def test_a_manager_is_asked_for_tokens_by_the_user_data_of_all_classes(tokens: bool) -> None:
    clock = SystemClock()
    client = Client(LoopbackTransport(ApiServer(clock=clock, random=random.Random(1))), clock=clock)
    prepared = namespaces.prepared(client, "ns", {}, bootstrap_tokens=tokens, clean=True)
    async with prepared:
        classes = (await client.list_page(MACHINE_CLASSES, namespace="ns")).items
        named = {each.secret_ref.name for each in classes if each.secret_ref}
        assert len(classes) == 2
        (secret,) = [await client.get(SECRETS, name, namespace="ns") for name in named]
    user_data = base64.b64decode(secret.data[USER_DATA])
    assert needs_token({USER_DATA: user_data}) is tokens
    assert b"<<MACHINE_NAME>>" in user_data


def test_a_fleet_is_always_created_and_deleted() -> None:
    assert fleet.arguments(["--phases=kill"]).phases == ("create", "kill", "delete")


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("--server", "/no/such/kubeconfig", "--server /no/such/kubeconfig"),
        ("--manager", "nonsense", "--manager 'nonsense'"),
    ],
)
def test_what_cannot_be_had_is_said_in_a_line(flag: str, value: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.fleet", flag, value],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"bench.fleet: {said}" in done.stderr


def test_the_provider_is_found_as_any_out_of_tree_one(tmp_path: Path) -> None:
    plug_in.write(tmp_path)
    asks = "from mcm.driver import load_provider; print(load_provider('instant').__module__)"
    done = subprocess.run(
        [sys.executable, "-c", asks],
        cwd=tmp_path,
        env=plug_in.environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "bench.instant.provider"


def _driver() -> Driver:
    return create(
        ProviderContext(
            control=None,  # type: ignore[arg-type] # it asks nobody
            target=None,
            namespace="ns",
            clock=SystemClock(),
            random=random.Random(1),
        )
    )


def _machine(provider_id: str = "") -> Machine:
    spec = MachineSpec(provider_id=provider_id)
    return Machine(metadata=ObjectMeta(name="m", namespace="ns"), spec=spec)


async def test_a_vm_is_there_from_its_creation_to_its_deletion() -> None:
    driver = _driver()
    with pytest.raises(DriverError) as missing:
        await driver.get_machine_status(GetMachineStatusRequest(_machine(), _CLASS, {}))
    assert missing.value.code is Code.NOT_FOUND
    made = await driver.create_machine(CreateMachineRequest(_machine(), _CLASS, {}))
    again = await driver.create_machine(CreateMachineRequest(_machine(), _CLASS, {}))
    assert made == again
    found = await driver.get_machine_status(GetMachineStatusRequest(_machine(), _CLASS, {}))
    assert (found.provider_id, found.node_name) == (made.provider_id, "m")
    listed = await driver.list_machines(ListMachinesRequest(_CLASS, {}))
    assert listed.machines == {made.provider_id: "m"}
    await driver.delete_machine(DeleteMachineRequest(_machine(made.provider_id), _CLASS, {}))
    await driver.delete_machine(DeleteMachineRequest(_machine(), _CLASS, {}))
    assert (await driver.list_machines(ListMachinesRequest(_CLASS, {}))).machines == {}


async def test_a_vm_outlives_the_process_that_made_it() -> None:
    made = await _driver().create_machine(CreateMachineRequest(_machine(), _CLASS, {}))
    request = GetMachineStatusRequest(_machine(made.provider_id), _CLASS, {})
    assert (await _driver().get_machine_status(request)).provider_id == made.provider_id


def test_a_reaction_is_from_the_first_event_to_the_first_answer() -> None:
    reactions = Reactions()
    reactions.begins(CREATED, "a", 1.0)
    reactions.begins(CREATED, "a", 2.0)
    reactions.ends(CREATED, "a", 4.0)
    reactions.ends(CREATED, "a", 9.0)
    reactions.ends(CREATED, "never begun", 9.0)
    reactions.begins(JOINED, "gone", 1.0)
    reactions.forget(JOINED, "gone")
    reactions.ends(JOINED, "gone", 2.0)
    assert reactions.taken() == {CREATED: [3.0]}
    assert reactions.taken() == {}


@pytest.mark.parametrize(
    ("count", "p50", "p99"), [(1, 1, 1), (2, 1, 2), (100, 50, 99), (101, 51, 100), (1000, 500, 990)]
)
def test_a_percentile_is_a_value_that_occurred(count: int, p50: float, p99: float) -> None:
    found = delays(random.Random(1).sample(range(1, count + 1), count))
    assert found is not None
    assert (found.count, found.p50, found.p99, found.most) == (count, p50, p99, count)


def test_nothing_has_no_delays() -> None:
    assert delays([]) is None


@pytest.mark.parametrize(
    ("answer", "whole"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Le", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", False),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", True),
    ],
)
def test_the_end_of_an_answer_is_seen(answer: bytes, whole: bool) -> None:
    assert is_whole(answer) is whole
