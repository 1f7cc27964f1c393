from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcm.controllers.provider.masking import MASK, SHORTEST, SHORTEST_PART, Mask, Masks

PASSWORD = "p@ss/w0rd+é"
PEM = """\
-----BEGIN PRIVATE KEY-----
MIIEvQIBADANBgkqhkiG9w0BAQEF
AASCBKcwggSj
-----END PRIVATE KEY-----
"""
ACCOUNT = json.dumps(
    {
        "type": "service_account",
        "private_key": PEM,
        "token_uri": "https://oauth2.example.com/token",
        "nested": [{"client_secret": "GOCSPX-abcdef"}],
    }
)
USER_DATA = "#cloud-config\nruncmd:\n- kubeadm join --token abcdef.0123456789abcdef 10.0.0.1\n"


def masked(text: str, *values: str) -> str:
    return Mask(value.encode() for value in values)(text)


@pytest.mark.parametrize(
    "form",
    [
        PASSWORD,
        base64.b64encode(PASSWORD.encode()).decode(),
        base64.urlsafe_b64encode(PASSWORD.encode()).decode().rstrip("="),
        quote(PASSWORD),
        quote(PASSWORD, safe=""),
        quote_plus(PASSWORD),
        json.dumps(PASSWORD)[1:-1],
        str(PASSWORD.encode())[2:-1],
    ],
)
def test_a_value_is_masked_in_every_usual_form(form: str) -> None:
    assert masked(f"login {form} refused", PASSWORD) == f"login {MASK} refused"


@pytest.mark.parametrize("user", ["root", "admin", "me"])
def test_a_value_inside_a_longer_encoded_text_is_masked(user: str) -> None:
    """As in ``Authorization: Basic``: what is before it shifts all its letters."""
    header = base64.b64encode(f"{user}:{PASSWORD}!".encode()).decode()
    shown = masked(header, PASSWORD)
    assert MASK in shown
    assert len(shown) <= len(MASK) + len(base64.b64encode(f"{user}:!".encode())) + 2


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("hunter22\n", "wrong: hunter22", "wrong: ***"),
        ("abcd", "abcd is short", "abcd is short"),
        ("", "nothing", "nothing"),
        (" \n ", "   \n   ", "   \n   "),
        (PEM, "bad line AASCBKcwggSj", "bad line ***"),
        (PEM, "bad key MIIEvQIBADANBgkqhk... (cut)", "bad key ***... (cut)"),
        (PEM, repr(PEM), r"'***\n'"),
        (ACCOUNT, "bad secret GOCSPX-abcdef", "bad secret ***"),
        (ACCOUNT, "bad line AASCBKcwggSj", "bad line ***"),
        (ACCOUNT, f"bad key {PEM}", "bad key ***\n"),
        (
            ACCOUNT,
            "cannot reach https://oauth2.example.com/token",
            "cannot reach https://oauth2.example.com/token",
        ),
        (USER_DATA, "token abcdef.0123456789abcdef", "token ***"),
        (USER_DATA, "token secret 0123456789abcdef", "token secret ***"),
        (USER_DATA, base64.b64encode(USER_DATA.encode()).decode()[:40] + "…", "***…"),
        (USER_DATA, "the runcmd: section", "the runcmd: section"),
        ('{"broken', 'the {"broken part', "the *** part"),
    ],
)
def test_parts_and_beginnings_of_values(value: str, text: str, shown: str) -> None:
    assert masked(text, value) == shown


@pytest.mark.parametrize("value", ["motdepasséé", "it's-a-secret", 'quo"ted-one', "back\\slashed"])
def test_what_an_escape_changes_is_masked(value: str) -> None:
    for form in (json.dumps(value)[1:-1], repr(value)[1:-1], ascii(value)[1:-1]):
        assert masked(f"<{form}>", value) == f"<{MASK}>"


def test_overlapping_values_are_masked_together() -> None:
    assert masked("xabcdefghix", "abcdef", "defghi", "cdefg") == f"x{MASK}x"


def test_what_a_mask_joins_is_masked_again() -> None:
    assert masked("**SECRET", "SECRET", "*****") == MASK


def test_bytes_that_are_no_text_are_masked_as_what_they_are_shown_as() -> None:
    key = bytes(range(128, 160))
    mask = Mask([key])
    for form in (base64.b64encode(key).decode(), str(key)[2:-1], key.decode(errors="replace")):
        assert mask(f"key {form} refused") == f"key {MASK} refused"


VALUES = st.one_of(st.text(max_size=40), st.text("ab*\n", max_size=12), st.text("a", max_size=40))


@given(values=st.lists(VALUES, max_size=4), data=st.data())
@example(values=["SECRET", "*****"], data=None)
def test_no_value_is_left_and_masking_twice_changes_nothing(
    values: list[str], data: st.DataObject | None
) -> None:
    pieces = ["**SECRET"]
    if data is not None:
        pieces = data.draw(st.lists(st.one_of(st.sampled_from([*values, ""]), VALUES), max_size=6))
    mask = Mask(value.encode(errors="replace") for value in values)
    shown = mask("".join(pieces))
    for value in values:
        kept = value.encode(errors="replace").strip().decode()
        assert len(kept) < SHORTEST or kept not in shown
        lines = kept.splitlines() if len(kept) >= SHORTEST else []
        for line in lines if len(lines) > 1 else []:
            assert len(line.strip()) < SHORTEST_PART or line.strip() not in shown
    assert mask(shown) == shown


@given(
    value=st.binary(min_size=12, max_size=30),
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
)
def test_no_value_is_left_in_what_was_encoded_with_it(
    value: bytes, before: bytes, after: bytes
) -> None:
    """Of an encoded value only what its neighbours share a letter with may show."""
    value = b"<" + value + b">"
    encoded = base64.b64encode(before + value + after).decode()
    assert len(Mask([value])(encoded)) <= len(base64.b64encode(before + after)) + len(MASK) + 8


@given(values=st.lists(st.binary(max_size=60), max_size=4), text=st.text(max_size=60))
def test_masking_never_raises_and_leaves_other_texts_alone(values: list[bytes], text: str) -> None:
    assert Mask(values)(text) == text or any(len(value) >= SHORTEST for value in values)
    assert Mask([])(text) == text


def test_masks_are_kept_for_the_secrets_used_last() -> None:
    masks = Masks(most=2)
    first = masks.of({"a": b"hunter22"})
    assert masks.of({"b": b"hunter22"}) is first
    masks.of({"a": b"other"})
    assert masks.of({"a": b"hunter22"}) is first
    masks.of({"a": b"third"})
    masks.of({"a": b"fourth"})
    again = masks.of({"a": b"hunter22"})
    assert again is not first
    assert again("hunter22") == MASK


def test_a_large_document_is_masked_in_no_time_to_speak_of() -> None:
    """Ten thousand lines, a long text: what is done is bounded by their sizes."""
    lines = [f"echo step number {n} of the script" for n in range(10_000)]
    mask = Mask(["\n".join(lines).encode()])
    assert mask(" and ".join(lines[:100])) == " and ".join([MASK] * 100)


@pytest.mark.parametrize("others", [0, 1000])
def test_few_values_and_many_are_masked_alike(others: int) -> None:
    """What begins alike may go on differently, and where another one ends."""
    values = [b"a" * 40, b"a" * 16 + b"SECRET", b"a" * 16 + b"OTHER", b"hunter22"]
    mask = Mask([*values, *(b"value-number-%04d" % n for n in range(others))])
    assert mask(f"x{'a' * 40}SECRETy hunter22 {'a' * 20}OTHERz") == f"x{MASK}y {MASK} {MASK}z"


def test_each_value_is_masked_however_many_there_are() -> None:
    values = [f"{n:x}-value-{n}-{'z' * (n % 9)}" for n in range(2000)]
    mask = Mask(value.encode() for value in values)
    for value in values[::97]:
        assert mask(f"a {value} b") == f"a {MASK} b"
    text = "no such machine: " * 4000
    assert mask(text) == text
