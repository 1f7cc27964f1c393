"""A VM keeps the token it was made with: prolonged, never replaced, gone once it is not needed."""

from __future__ import annotations

import asyncio
import base64
import re
from datetime import timedelta

import pytest

from mcm.api.core import SECRETS
from mcm.api.machine import MACHINES
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.api.timestamps import parse_rfc3339
from mcm.client.errors import RequestTimeout
from mcm.client.transport import Request
from mcm.controllers.machine.creation.bootstrap_token import token_id
from mcm.controllers.machine.creation.known_tokens import object_name
from mcm.driver import Code
from tests.unit.machine.bench import EPOCH, NAMESPACE, Bench, bench, on_bench, with_settings

MINUTE = 60.0


def tokens(b: Bench) -> dict[str, dict[str, str]]:
    """The decoded data of every bootstrap token, by the name of its Secret."""
    found = {}
    for secret in b.objects(SECRETS):
        if secret.get("type") == "bootstrap.kubernetes.io/token":
            data, metadata = secret["data"], secret["metadata"]
            assert isinstance(data, dict) and isinstance(metadata, dict)
            found[str(metadata["name"])] = {
                key: base64.b64decode(str(text)).decode() for key, text in data.items()
            }
    return found


def text_of(b: Bench) -> str:
    (data,) = tokens(b).values()
    return f"{data['token-id']}.{data['token-secret']}"


def valid_for(b: Bench) -> float:
    """Seconds from the beginning of the test to the end of the one token."""
    (data,) = tokens(b).values()
    return (parse_rfc3339(data["expiration"]) - EPOCH).total_seconds()


async def give_time(b: Bench, text: str, name: str = "m") -> None:
    patch: JSONObject = {"metadata": {"annotations": {ANNOTATION_EFFECTIVE_CREATION_TIMEOUT: text}}}
    await b.client.patch(MACHINES, name, patch, namespace=NAMESPACE)


@on_bench
async def test_a_token_near_its_end_is_prolonged_and_stays_the_same() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=3)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        first, until = text_of(b), valid_for(b)
        assert 20 * MINUTE <= until <= 20 * MINUTE + 2
        await give_time(b, "1h")
        await b.until_phase("Pending", within=600)
        assert text_of(b) == first
        assert f"join with {first} as m".encode() == b.driver.seen_user_data["m"]
        assert valid_for(b) >= 60 * MINUTE
        assert len(b.written("secrets", "bootstrap-token-" + first[:6])) == 1


@on_bench
async def test_a_vm_that_is_given_more_time_to_join_keeps_its_token_for_that_time() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        first = text_of(b)
        await b.settle(17 * MINUTE)
        assert valid_for(b) <= 20 * MINUTE + 2
        await give_time(b, "40m")
        await b.settle()
        assert text_of(b) == first
        assert valid_for(b) >= 40 * MINUTE
        writes = len(b.writes)
        await b.settle(15 * MINUTE)
        assert len(b.writes) == writes
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        assert not tokens(b)


@on_bench
async def test_a_short_time_to_join_costs_no_prolongation_at_every_attempt() -> None:
    settings = with_settings(creation_timeout=timedelta(minutes=2))
    async with bench(settings=settings) as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL, times=2)
        await b.make_machine()
        await b.until_phase("Pending", within=110)
        (name,) = tokens(b)
        assert [w.method for w in b.written("secrets", name)] == []
        assert len([w for w in b.written("secrets") if w.method == "POST"]) == 1


@on_bench
async def test_a_token_taken_away_under_a_vm_is_made_again_as_it_was_when_it_must_last() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        first = text_of(b)
        await b.client.delete(SECRETS, next(iter(tokens(b))), namespace="kube-system")
        await give_time(b, "40m")
        await b.settle()
        assert text_of(b) == first


@on_bench
async def test_a_machine_whose_token_was_lost_while_nobody_looked_says_so_once() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        await b.crash()
        await b.client.delete(SECRETS, next(iter(tokens(b))), namespace="kube-system")
        await b.start()
        await b.settle(61)
        last = (await b.machine()).status.last_operation
        assert "its bootstrap token is gone" in last.description
        assert (last.state, last.type) == ("Failed", "Create")
        assert (await b.machine()).phase == "Pending"
        assert not tokens(b)
        writes = len(b.writes)
        await b.label_machine("m", "look", "again")
        await b.settle(5 * MINUTE)
        assert len(b.writes) == writes
        assert b.events().count("BootstrapTokenLost") == 1


@on_bench
async def test_a_vm_that_has_joined_needs_no_token_and_a_successor_asks_for_none() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        await b.join(ready="False")
        await b.settle()
        await b.crash()
        await b.client.delete(SECRETS, next(iter(tokens(b))), namespace="kube-system")
        await b.start()
        await b.settle(60)
        assert "token" not in (await b.machine()).status.last_operation.description


@on_bench
async def test_a_vm_of_the_go_original_has_its_token_under_another_id() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine("pool-abcde")
        await b.until_phase("Pending", "pool-abcde")
        await b.crash()
        await b.client.delete(SECRETS, next(iter(tokens(b))), namespace="kube-system")
        body: JSONObject = {
            "metadata": {"name": "bootstrap-token-616263"},
            "type": "bootstrap.kubernetes.io/token",
        }
        await b.client.create(SECRETS, body, namespace="kube-system")
        await b.start()
        await b.settle(90)
        last = (await b.machine("pool-abcde")).status.last_operation
        assert last.description == "Creating machine on cloud provider"


@on_bench
async def test_of_two_machines_that_draw_one_id_each_has_a_token_and_deletes_only_its_own() -> None:
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL)
        await b.make_machine("other")
        await b.until_phase("CrashLoopBackOff", "other")
        other = next(iter(tokens(b)))
        await b.client.delete(SECRETS, other, namespace="kube-system")
        b.driver.fail("status", Code.UNAVAILABLE)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        taken = object_name(token_id(await b.machine(), 0))
        # As if the other machine had drawn the same id.
        description = base64.b64encode(b"Lets machine default/other (uid) join the cluster.")
        body: JSONObject = {
            "metadata": {"name": taken},
            "data": {"description": description.decode()},
        }
        await b.client.create(SECRETS, body, namespace="kube-system")
        await b.until_phase("Pending")
        own = object_name(token_id(await b.machine(), 1))
        assert {taken, own} <= {str(s["metadata"]["name"]) for s in b.objects(SECRETS)}  # type: ignore[index]
        assert b"." in b.driver.seen_user_data["m"]
        assert own[-6:].encode() in b.driver.seen_user_data["m"]
        await b.crash()
        await b.start()
        await b.join()
        await b.until_phase("Running")
        await b.settle()
        left = {str(s["metadata"]["name"]) for s in b.objects(SECRETS)}  # type: ignore[index]
        assert taken in left and own not in left


@on_bench
async def test_a_refused_token_is_shown_on_the_machine_and_made_when_it_is_allowed() -> None:
    async with bench() as b:
        await b.make_class()
        refusal = b.faults.answer(403, method="POST", path=r"/kube-system/secrets$")
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        last = (await b.machine()).status.last_operation
        assert "refuses the bootstrap token, a Secret in kube-system (403 Forbidden" in (
            last.description
        )
        assert "grant create, get, patch and delete of secrets" in last.description
        await b.settle(5 * MINUTE)
        assert len([w for w in b.written("machines") if w.path.endswith("/status")]) == 1
        assert b.driver.made == 0
        refusal.lift()
        await b.until_phase("Pending", within=200)
        assert b.events().count("CreationBlocked") == 1


@pytest.mark.parametrize("restarted", [False, True])
def test_a_token_that_could_not_be_deleted_when_it_joined_goes_with_the_machine(
    *, restarted: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.make_machine()
            await b.until_phase("Pending")
            refusal = b.faults.answer(500, method="DELETE", path=r"/kube-system/secrets/")
            await b.join()
            await b.until_phase("Running")
            assert len(tokens(b)) == 1
            refusal.lift()
            if restarted:
                await b.crash()
                await b.start()
            refusal = b.faults.answer(500, method="DELETE", path=r"/kube-system/secrets/")
            await b.delete_machine()
            await b.settle(15)  # its deletion is repeated, as nobody else would
            assert await b.exists(MACHINES, "m")
            refusal.lift()
            await b.until_gone()
            assert not tokens(b)
            assert not b.driver.vms

    main()


@on_bench
async def test_a_token_that_nobody_can_delete_keeps_no_machine() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        b.faults.answer(403, method="DELETE", path=r"/kube-system/secrets/")
        await b.delete_machine()
        await b.until_gone(within=60)
        assert len(tokens(b)) == 1


@on_bench
async def test_a_failed_machine_leaves_no_token_either() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        await b.until_phase("Failed", within=1300)
        await b.crash()
        await b.start()
        await b.delete_machine()
        await b.until_gone()
        assert not tokens(b)


@on_bench
async def test_for_a_vm_that_was_made_without_a_token_none_is_looked_for() -> None:
    async with bench() as b:
        await b.make_class(with_secret=False)
        await b.running()
        await b.delete_machine()
        await b.until_gone()
        assert b.server.requests.total(resource=SECRETS.name, agent="mcm", verb="get") == 0


@on_bench
async def test_a_token_made_before_its_user_data_asked_for_none_is_taken_away_all_the_same() -> (
    None
):
    async with bench() as b:
        await b.make_class()
        b.driver.fail("create", Code.INTERNAL)
        await b.make_machine()
        await b.until_phase("CrashLoopBackOff")
        assert tokens(b)
        encoded = base64.b64encode(b"#!/bin/sh").decode()
        await b.client.patch(SECRETS, "s", {"data": {"userData": encoded}}, namespace=NAMESPACE)
        await b.until_phase("Pending", within=600)
        await b.join()
        await b.until_phase("Running")
        assert not tokens(b)


@on_bench
async def test_a_deleted_machine_that_never_joined_leaves_no_token() -> None:
    async with bench() as b:
        await b.make_class()
        await b.make_machine()
        await b.until_phase("Pending")
        assert tokens(b)
        await b.crash()
        await b.start()
        await b.delete_machine()
        await b.until_gone()
        assert not tokens(b)


@pytest.mark.parametrize("number", range(1, 9))
@pytest.mark.parametrize("arrived", [False, True])
def test_a_life_with_a_token_survives_the_end_of_the_process_at_any_write(
    number: int, *, arrived: bool
) -> None:
    """The VM joins with the very token it was made with, and none is left at the end."""

    @on_bench
    async def main() -> None:
        async with bench() as b:
            await b.make_class()
            await b.settle()
            ended, seen, deleted_in_vain = asyncio.Event(), 0, 0

            def count(request: Request) -> None:
                nonlocal seen, deleted_in_vain
                if not re.search("/machines/m|/kube-system/secrets", request.path):
                    return
                seen += 1
                if seen == number:
                    ended.set()
                    if not arrived:
                        deleted_in_vain += request.method == "DELETE"
                        raise RequestTimeout("lost on its way")

            async def take_over() -> None:
                await ended.wait()
                await b.crash()
                await b.start()

            b.transport.before_write = count
            b.faults.lose_answers(
                where=lambda r: arrived and seen == number and r.method != "GET", times=1
            )
            successor = asyncio.create_task(take_over())
            await b.make_machine()
            await b.until_phase("Pending")
            await b.settle()
            assert f"join with {text_of(b)} as m".encode() == b.driver.seen_user_data["m"]
            await b.join()
            await b.until_phase("Running")
            await b.settle()
            if ended.is_set():
                await successor
            if arrived or deleted_in_vain == 0:
                assert not tokens(b)
            await b.delete_machine()
            await b.until_gone()
            await successor
            assert b.driver.made == 1
            assert not tokens(b)

    main()
