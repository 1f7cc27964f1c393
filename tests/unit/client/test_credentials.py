from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.client.connection import Impersonation, StaticToken
from mcm.client.credentials import (
    Certificate,
    Credential,
    CredentialCache,
    Fetched,
    RenewingCredentials,
    StaticCredentials,
    TokenFileSource,
    basic,
    bearer,
    impersonation_headers,
)
from mcm.client.errors import CredentialsError

SENTINEL = "s3ntinel-t0ken"


def token(text: str, *, fresh_for: float | None = None, valid_for: float | None = None) -> Fetched:
    return Fetched(bearer(text, origin="test"), fresh_for=fresh_for, valid_for=valid_for)


class Source:
    """Hands out what it was given, in order, and counts; an error is raised."""

    def __init__(self, *results: Fetched | CredentialsError) -> None:
        self._results: Iterator[Fetched | CredentialsError] = iter(results)
        self.fetched = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def fetch(self) -> Fetched:
        self.fetched += 1
        await self.gate.wait()
        result = next(self._results)
        if isinstance(result, CredentialsError):
            raise result
        return result


async def test_a_credential_is_fetched_once_and_kept(hands: Any) -> None:
    source = Source(token("a"))
    provider = RenewingCredentials(source, clock=hands)
    first = await provider.current()
    hands.seconds += 1e6
    assert await provider.current() is first
    assert first.headers == (("Authorization", "Bearer a"),)


async def test_it_is_renewed_when_no_longer_fresh(hands: Any) -> None:
    source = Source(token("a", fresh_for=50), token("b", fresh_for=50))
    provider = RenewingCredentials(source, clock=hands)
    first = await provider.current()
    hands.seconds += 49
    assert await provider.current() is first
    hands.seconds += 1
    second = await provider.current()
    assert (second.generation, second.headers) == (1, (("Authorization", "Bearer b"),))


async def test_the_same_token_again_is_the_same_generation(hands: Any) -> None:
    provider = RenewingCredentials(
        Source(token("a", fresh_for=1), token("a", fresh_for=1)), clock=hands
    )
    first = await provider.current()
    hands.seconds += 2
    assert (await provider.current()).generation == first.generation


async def test_many_callers_share_one_fetch(hands: Any) -> None:
    source = Source(token("a"))
    source.gate.clear()
    provider = RenewingCredentials(source, clock=hands)
    callers = [asyncio.ensure_future(provider.current()) for _ in range(20)]
    await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop
    source.gate.set()
    results = await asyncio.gather(*callers)
    assert source.fetched == 1
    assert len({id(r) for r in results}) == 1


async def test_a_cancelled_caller_does_not_take_the_others_with_it(hands: Any) -> None:
    source = Source(token("a"))
    source.gate.clear()
    provider = RenewingCredentials(source, clock=hands)
    first = asyncio.ensure_future(provider.current())
    second = asyncio.ensure_future(provider.current())
    await asyncio.sleep(0)  # noqa: TID251 - one turn of the loop
    first.cancel()
    await asyncio.wait([first])
    source.gate.set()
    assert (await second).headers == (("Authorization", "Bearer a"),)


async def test_a_storm_of_rejections_causes_one_renewal(hands: Any) -> None:
    source = Source(token("a"), token("b"))
    provider = RenewingCredentials(source, clock=hands)
    old = await provider.current()
    renewed = await asyncio.gather(*(provider.renewed(old) for _ in range(20)))
    assert source.fetched == 2
    assert {r.generation for r in renewed if r is not None} == {1}
    assert None not in renewed


async def test_a_renewal_that_brings_the_same_token_is_nothing_to_try(hands: Any) -> None:
    source = Source(token("a"), token("a"))
    provider = RenewingCredentials(source, clock=hands)
    assert await provider.renewed(await provider.current()) is None


async def test_a_server_that_rejects_everything_causes_few_renewals(hands: Any) -> None:
    source = Source(*(token(f"t{n}") for n in range(100)))
    provider = RenewingCredentials(source, clock=hands)
    for _ in range(600):  # a minute of a rejected request every 0.1 s
        await provider.renewed(await provider.current())
        hands.seconds += 0.1
    assert source.fetched <= 8


async def test_after_a_calm_time_a_rejection_is_answered_at_once_again(hands: Any) -> None:
    source = Source(*(token(f"t{n}") for n in range(10)))
    provider = RenewingCredentials(source, clock=hands)
    for _ in range(3):
        assert await provider.renewed(await provider.current()) is not None
        hands.seconds += 3600


async def test_failures_are_not_repeated_for_each_request(hands: Any) -> None:
    source = Source(*[CredentialsError("plugin broke")] * 100)
    provider = RenewingCredentials(source, clock=hands)
    for _ in range(600):
        with pytest.raises(CredentialsError, match="plugin broke"):
            await provider.current()
        hands.seconds += 0.1
    assert source.fetched <= 7


async def test_the_old_one_serves_on_while_it_is_valid(
    hands: Any, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(
        token("a", fresh_for=50, valid_for=60),
        CredentialsError("no"),
        CredentialsError("no"),
        CredentialsError("no"),
    )
    provider = RenewingCredentials(source, clock=hands)
    first = await provider.current()
    hands.seconds += 55
    with caplog.at_level(logging.WARNING):
        assert await provider.current() is first
        assert await provider.current() is first
    assert len(caplog.records) == 1
    hands.seconds += 5
    with pytest.raises(CredentialsError):
        await provider.current()


async def test_a_known_expiry_is_told_instead_of_tried(hands: Any) -> None:
    expires_at = hands.now().timestamp() + 10
    provider = StaticCredentials(
        bearer("a", origin="t"), clock=hands, expires_at=expires_at, remedy="log in again"
    )
    current = await provider.current()
    assert await provider.renewed(current) is None
    hands.seconds += 10
    with pytest.raises(CredentialsError, match="expired; log in again"):
        await provider.current()


async def test_a_token_file_is_stripped_and_read_again(tmp_path: Path, hands: Any) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    provider = RenewingCredentials(TokenFileSource(str(file)), clock=hands)
    assert (await provider.current()).headers == (("Authorization", "Bearer one"),)
    file.write_text("  two \r\n")
    assert (await provider.current()).headers == (("Authorization", "Bearer one"),)
    hands.seconds += 60
    assert (await provider.current()).headers == (("Authorization", "Bearer two"),)


async def test_a_token_file_that_is_away_for_a_while_changes_nothing(
    tmp_path: Path, hands: Any
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    provider = RenewingCredentials(TokenFileSource(str(file)), clock=hands)
    first = await provider.current()
    file.unlink()
    hands.seconds += 3600
    assert await provider.current() is first
    file.write_text("")
    hands.seconds += 3600
    assert await provider.current() is first
    file.write_text("two")
    hands.seconds += 3600
    assert (await provider.current()).generation == 1


async def test_a_rejected_token_is_read_from_the_file_at_once(tmp_path: Path, hands: Any) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    provider = RenewingCredentials(TokenFileSource(str(file)), clock=hands)
    first = await provider.current()
    file.write_text("two")
    renewed = await provider.renewed(first)
    assert renewed is not None and renewed.headers == (("Authorization", "Bearer two"),)


async def test_a_missing_token_file_is_named(tmp_path: Path, hands: Any) -> None:
    provider = RenewingCredentials(TokenFileSource(str(tmp_path / "nope")), clock=hands)
    with pytest.raises(CredentialsError, match=r"nope: No such file"):
        await provider.current()


@given(st.text(max_size=40))
def test_a_header_never_holds_what_a_header_must_not(text: str) -> None:
    try:
        ((name, value),) = bearer(text, origin="token")
    except CredentialsError:
        return
    assert name == "Authorization"
    assert value.isascii() and value.isprintable() and value != "Bearer "


@pytest.mark.parametrize("text", ["", " \n", f"{SENTINEL}\r\nX-A: b", f"{SENTINEL}\x00", "tökén"])
def test_what_is_no_token_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(CredentialsError) as caught:
        bearer(text, origin="token file /t")
    assert str(caught.value).startswith("token file /t ")
    assert SENTINEL not in str(caught.value) and "tökén" not in str(caught.value)


steps = st.lists(
    st.tuples(
        st.sampled_from(["accept-new", "accept-same", "fail", "reject", "wait"]),
        st.floats(min_value=0.1, max_value=100),
    ),
    max_size=40,
)


@given(steps)
def test_the_cache_keeps_its_promises(script: list[tuple[str, float]]) -> None:
    cache, now, generations, made = CredentialCache(), 0.0, [-1], 0
    dead_at = None
    for action, amount in script:
        if action.startswith("accept"):
            made += action == "accept-new" or not made
            valid_for = amount
            credential = cache.accept(
                token(f"t{made}", fresh_for=amount / 2, valid_for=valid_for), now
            )
            dead_at = now + valid_for
            assert credential.generation - generations[-1] in (0, 1)
            generations.append(credential.generation)
            assert cache.failure(now) is None
        elif action == "fail":
            cache.fail(CredentialsError("x"), now)
            assert cache.failure(now) is not None
            assert not cache.may_replace(Credential(0), now)
        elif action == "reject":
            cache.may_replace(Credential(generations[-1]), now)
            assert not cache.may_replace(Credential(generations[-1]), now)
        else:
            now += amount
        fresh, usable = cache.fresh(now), cache.usable(now)
        assert fresh is None or fresh is usable
        assert (usable is not None) == (dead_at is not None and now < dead_at)


def test_basic_auth_is_encoded() -> None:
    assert basic("aladdin", "opensesame") == (("Authorization", "Basic YWxhZGRpbjpvcGVuc2VzYW1l"),)


def test_impersonation_becomes_headers_in_order() -> None:
    who = Impersonation(
        "jane", "42", ("devs", "ops"), (("example.com/scope", ("a", "b")), ("50%", ("c",)))
    )
    assert impersonation_headers(who) == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "42"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.com%2Fscope", "a"),
        ("Impersonate-Extra-example.com%2Fscope", "b"),
        ("Impersonate-Extra-50%25", "c"),
    )


def test_no_repr_shows_a_secret() -> None:
    fetched = Fetched(bearer(SENTINEL, origin="t"), Certificate(b"c", SENTINEL.encode()))
    credential = CredentialCache().accept(fetched, 0.0)
    for value in (fetched, credential, credential.certificate, StaticToken(SENTINEL)):
        assert SENTINEL not in repr(value)


def test_our_own_path_is_not_a_secret(tmp_path: Path) -> None:
    assert os.fspath(tmp_path) in repr(StaticToken("x", remedy=os.fspath(tmp_path)))
