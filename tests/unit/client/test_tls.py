from __future__ import annotations

import logging
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mcm.client.connection import TLSSpec
from mcm.client.credentials import Certificate, Credential
from mcm.client.errors import ConfigurationError, TLSError
from mcm.client.tls import Material, TLSSource, build_context, read_material

NOBODY = Credential(0)


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_a_context_trusts_only_the_given_authority(authority: Any) -> None:
    context = build_context(Material(ca=b"some words before\n" + authority.pem))
    assert len(context.get_ca_certs()) == 1
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_without_an_authority_the_systems_are_trusted() -> None:
    context = build_context(Material())
    assert context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname


def test_verification_can_be_switched_off_but_not_beside_an_authority(authority: Any) -> None:
    context = build_context(Material(insecure=True))
    assert context.verify_mode is ssl.CERT_NONE and not context.check_hostname
    with pytest.raises(ConfigurationError, match="exclude each other"):
        build_context(Material(ca=authority.pem, insecure=True))


def test_a_key_is_on_disk_only_while_it_is_loaded(
    authority: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[tuple[int, int]] = []
    load = ssl.SSLContext.load_cert_chain

    def spy(self: ssl.SSLContext, path: str, **options: Any) -> None:
        file = Path(path)
        modes.append((file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777))
        load(self, path, **options)

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    cert, key = authority.issue()
    build_context(Material(ca=authority.pem, cert=cert, key=key))
    assert modes == [(0o600, 0o700)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cert", "key"), [(True, False), (False, True)], ids=["only certificate", "only key"]
)
def test_half_a_client_certificate_is_refused(cert: bool, key: bool, authority: Any) -> None:
    pem = authority.issue()
    with pytest.raises(ConfigurationError, match="one is missing"):
        build_context(Material(cert=pem[0] if cert else b"", key=pem[1] if key else b""))


def test_a_key_of_another_certificate_is_refused(authority: Any) -> None:
    (cert, _), (_, key) = authority.issue(), authority.issue()
    with pytest.raises(ConfigurationError, match=r"do not load \(KEY_VALUES_MISMATCH\)"):
        build_context(Material(cert=cert, key=key))


@pytest.mark.parametrize("ca", [b"words", b"-----BEGIN CERTIFICATE-----\nwords\n-----END"])
def test_an_authority_that_is_none_is_refused(ca: bytes) -> None:
    with pytest.raises(ConfigurationError, match="no PEM certificate"):
        build_context(Material(ca=ca))


def test_a_missing_or_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"certificate authority .*nope: No such file"):
        read_material(TLSSpec(ca_file=str(tmp_path / "nope")))
    with pytest.raises(ConfigurationError, match=r"client key .*empty is empty"):
        read_material(TLSSpec(key_file=written(tmp_path / "empty", b"\n")))


def test_data_wins_over_files(tmp_path: Path) -> None:
    spec = TLSSpec(ca_data=b"data", ca_file=str(tmp_path / "nope"))
    assert read_material(spec).ca == b"data"


async def test_unchanged_files_keep_the_context(authority: Any, tmp_path: Path, hands: Any) -> None:
    source = TLSSource(TLSSpec(ca_file=written(tmp_path / "ca", authority.pem)), clock=hands)
    first = await source.current(NOBODY)
    hands.seconds += 3600
    assert await source.current(NOBODY) is first


async def test_a_rotated_authority_is_trusted_within_five_minutes(
    authority: Any, other_authority: Any, tmp_path: Path, hands: Any
) -> None:
    spec = TLSSpec(ca_file=written(tmp_path / "ca", authority.pem))
    source = TLSSource(spec, clock=hands)
    first = await source.current(NOBODY)
    written(tmp_path / "ca", other_authority.pem)
    hands.seconds += 299
    assert await source.current(NOBODY) is first
    hands.seconds += 1
    second = await source.current(NOBODY)
    assert second.version == first.version + 1
    assert second.context.get_ca_certs() != first.context.get_ca_certs()


async def test_a_failed_handshake_brings_the_look_forward_but_not_without_end(
    authority: Any, other_authority: Any, tmp_path: Path, hands: Any
) -> None:
    source = TLSSource(TLSSpec(ca_file=written(tmp_path / "ca", authority.pem)), clock=hands)
    first = await source.current(NOBODY)
    written(tmp_path / "ca", other_authority.pem)
    source.suspect()
    assert await source.current(NOBODY) is first
    hands.seconds += 5
    assert (await source.current(NOBODY)).version == 1


@pytest.mark.parametrize("torn", [b"", b"-----BEGIN CERT", None])
async def test_a_torn_file_changes_nothing(
    torn: bytes | None,
    authority: Any,
    tmp_path: Path,
    hands: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "ca"
    source = TLSSource(TLSSpec(ca_file=written(file, authority.pem)), clock=hands)
    first = await source.current(NOBODY)
    if torn is None:
        file.unlink()
    else:
        file.write_bytes(torn)
    hands.seconds += 300
    with caplog.at_level(logging.WARNING):
        assert await source.current(NOBODY) is first
    assert "keeping the TLS material in use" in caplog.text


async def test_without_any_usable_material_there_is_no_connection(
    tmp_path: Path, hands: Any
) -> None:
    source = TLSSource(TLSSpec(ca_file=str(tmp_path / "nope")), clock=hands)
    with pytest.raises(TLSError, match="cannot read certificate authority"):
        await source.current(NOBODY)


async def test_a_plugins_certificate_replaces_the_specs(authority: Any, hands: Any) -> None:
    source = TLSSource(TLSSpec(ca_data=authority.pem), clock=hands)
    first = await source.current(NOBODY)
    old = Credential(1, certificate=Certificate(*authority.issue()))
    new = Credential(2, certificate=Certificate(*authority.issue()))
    assert (await source.current(old)).version == first.version + 1
    assert (await source.current(new)).version == first.version + 2
    # A request that still holds the older one must not turn the certificate back.
    assert (await source.current(old)).version == first.version + 2
    hands.seconds += 3600
    assert (await source.current(new)).version == first.version + 2


async def test_a_bad_certificate_of_a_plugin_is_an_error_not_the_old_identity(
    authority: Any, hands: Any
) -> None:
    source = TLSSource(TLSSpec(ca_data=authority.pem), clock=hands)
    await source.current(NOBODY)
    bad = Credential(1, certificate=Certificate(b"words", b"words"))
    with pytest.raises(TLSError, match="do not load"):
        await source.current(bad)


def test_keys_are_not_in_any_repr() -> None:
    assert "s3ntinel" not in repr(Material(key=b"s3ntinel")) + repr(TLSSpec(key_data=b"s3ntinel"))
