from __future__ import annotations

import base64
from urllib.parse import unquote_plus

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Secret
from mcm.controllers.machine.creation import bootstrap_token
from mcm.controllers.machine.creation.known_tokens import Token
from mcm.controllers.machine.creation.user_data import filled as fill_in
from mcm.controllers.machine.creation.user_data import needs_token
from tests.unit.machine.objects import after, machine

TOKEN = Token(id="abc123", secret="0123456789abcdef", expires=after(minutes=20))
ESCAPED = b"%3C%3CBOOTSTRAP_TOKEN%3E%3E"


def fill(user_data: bytes, token: Token | None = TOKEN) -> bytes:
    data = {"userData": user_data, "other": b"<<BOOTSTRAP_TOKEN>>"}
    result = fill_in(data, machine_name="m-1", token=token)
    assert result["other"] == data["other"]
    return result["userData"]


@pytest.mark.parametrize(
    ("before", "filled"),
    [
        (b"nothing", b"nothing"),
        (b"<<BOOTSTRAP_TOKEN>>", b"abc123.0123456789abcdef"),
        (b"a <<MACHINE_NAME>> b <<MACHINE_NAME>>", b"a m-1 b m-1"),
        (ESCAPED, b"abc123.0123456789abcdef"),
        (b"%3C%3CMACHINE_NAME%3E%3E", b"m-1"),
        (b"<<BOOTSTRAP_TOKEN>> " + ESCAPED, b"abc123.0123456789abcdef " + ESCAPED),
        (b"<<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>>", b"m-1 abc123.0123456789abcdef"),
    ],
)
def test_placeholders_are_filled_in_plain_form_or_else_in_escaped_form(
    before: bytes, filled: bytes
) -> None:
    assert fill(before) == filled


def test_without_token_its_placeholder_stays_and_the_name_is_filled_in() -> None:
    assert fill(b"<<BOOTSTRAP_TOKEN>> <<MACHINE_NAME>>", None) == b"<<BOOTSTRAP_TOKEN>> m-1"


def test_a_secret_without_user_data_is_left_alone() -> None:
    data = {"key": b"<<MACHINE_NAME>>"}
    assert fill_in(data, machine_name="m", token=TOKEN) == data


@pytest.mark.parametrize(
    ("user_data", "expected"),
    [(b"x<<BOOTSTRAP_TOKEN>>y", True), (ESCAPED, True), (b"<<MACHINE_NAME>>", False), (b"", False)],
)
def test_a_token_is_needed_only_where_there_is_a_place_for_it(
    user_data: bytes, *, expected: bool
) -> None:
    assert needs_token({"userData": user_data}) is expected
    assert not needs_token({"other": user_data})


@given(st.text(st.characters(blacklist_categories=["Cs"])))
def test_escaped_names_come_out_as_they_are(name: str) -> None:
    data = {"userData": b"%3C%3CMACHINE_NAME%3E%3E"}
    result = fill_in(data, machine_name=name, token=None)["userData"].decode()
    assert unquote_plus(result) == name


@given(name=st.text(min_size=1), attempt=st.integers(0, 9))
def test_an_id_is_six_letters_and_always_the_same_for_a_machine(name: str, attempt: int) -> None:
    id_ = bootstrap_token.token_id(machine(name), attempt)
    assert id_ == bootstrap_token.token_id(machine(name), attempt)
    assert len(id_) == 6
    assert set(id_) <= set("0123456789abcdefghijklmnopqrstuvwxyz")


def test_ten_thousand_machines_hardly_ever_share_an_id() -> None:
    ids = {bootstrap_token.token_id(machine(f"m-{n}"), 0) for n in range(10_000)}
    assert len(ids) > 9_990
    assert bootstrap_token.token_id(machine("m"), 1) != bootstrap_token.token_id(machine("m"), 0)


def stored(token: Token, name: str = "m") -> Secret:
    body = bootstrap_token.token_secret(token, machine(name), "system:bootstrappers:x")
    return msgspec.convert(body, Secret)


def test_the_secret_is_what_kubernetes_takes_for_a_bootstrap_token() -> None:
    secret = stored(TOKEN)
    data = {key: base64.b64decode(value).decode() for key, value in secret.data.items()}
    assert secret.type == "bootstrap.kubernetes.io/token"
    assert secret.metadata.key == "kube-system/bootstrap-token-abc123"
    assert data == {
        "description": "Lets machine ns/m (uid-m) join the cluster.",
        "token-id": "abc123",
        "token-secret": "0123456789abcdef",
        "expiration": "2026-01-01T00:20:00Z",
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:x",
    }


def test_a_token_is_read_back_by_its_own_machine_and_no_other() -> None:
    assert bootstrap_token.token_in(stored(TOKEN), machine("m")) == TOKEN
    assert bootstrap_token.token_in(stored(TOKEN), machine("other")) is None


@pytest.mark.parametrize("key", ["description", "token-secret", "expiration", "token-id"])
def test_a_secret_that_cannot_be_read_is_nobodys(key: str) -> None:
    secret = stored(TOKEN)
    for broken in ("!", base64.b64encode(b"\xff").decode()):
        damaged = msgspec.structs.replace(secret, data={**secret.data, key: broken})
        assert bootstrap_token.token_in(damaged, machine("m")) is None
    less = {k: v for k, v in secret.data.items() if k != key}
    assert (
        bootstrap_token.token_in(msgspec.structs.replace(secret, data=less), machine("m")) is None
    )


def test_a_new_token_is_secret() -> None:
    one, two = (bootstrap_token.new_token("abc123", after()) for _ in range(2))
    assert one.secret != two.secret
    assert len(one.secret) == 16
    assert one.secret not in repr(one)
