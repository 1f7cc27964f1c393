from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from mcm.client.errors import ConfigurationError
from mcm.sandbox.apiserver.front.certificates import Certificates


class FixedClock:
    def __init__(self, moment: datetime) -> None:
        self.moment = moment

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody waits here")


START = FixedClock(datetime(2025, 1, 1, tzinfo=UTC))


def later(**duration: float) -> FixedClock:
    return FixedClock(START.moment + timedelta(**duration))


def serving(folder: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())


def test_what_is_made_is_kept_over_restarts(tmp_path: Path) -> None:
    first = Certificates.load_or_create(tmp_path / "new" / "state", clock=START)
    again = Certificates.load_or_create(tmp_path / "new" / "state", clock=later(days=100))
    assert again == first
    assert len(first.token) >= 32


def test_the_certificate_is_for_loopback_names_and_signed_by_the_ca(tmp_path: Path) -> None:
    certificates = Certificates.load_or_create(tmp_path, clock=START)
    authority = x509.load_pem_x509_certificate(certificates.ca)
    certificate = serving(tmp_path)
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_keys_and_token_are_for_their_owner_only(tmp_path: Path) -> None:
    Certificates.load_or_create(tmp_path / "state", clock=START)
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    for name in ("ca.key", "tls.key", "token"):
        (tmp_path / "state" / name).chmod(0o644)
    certificates = Certificates.load_or_create(tmp_path / "state", clock=START)
    for name in ("ca.key", "tls.key", "token"):
        assert (tmp_path / "state" / name).stat().st_mode & 0o777 == 0o600
    assert certificates.token not in repr(certificates)


def test_a_certificate_about_to_expire_is_renewed_by_the_same_ca(tmp_path: Path) -> None:
    first = Certificates.load_or_create(tmp_path, clock=START)
    number = serving(tmp_path).serial_number
    again = Certificates.load_or_create(tmp_path, clock=later(days=340))
    assert again.ca == first.ca and again.token == first.token
    assert serving(tmp_path).serial_number != number
    assert serving(tmp_path).not_valid_after_utc == START.moment + timedelta(days=705)


def test_an_old_ca_is_replaced_with_all_it_signed(tmp_path: Path) -> None:
    first = Certificates.load_or_create(tmp_path, clock=START)
    again = Certificates.load_or_create(tmp_path, clock=later(days=3400))
    assert again.ca != first.ca
    serving(tmp_path).verify_directly_issued_by(x509.load_pem_x509_certificate(again.ca))


@pytest.mark.parametrize("name", ["tls.crt", "tls.key"])
def test_a_missing_or_foreign_certificate_is_made_anew(tmp_path: Path, name: str) -> None:
    certificates = Certificates.load_or_create(tmp_path / "a", clock=START)
    Certificates.load_or_create(tmp_path / "b", clock=START)
    (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    assert Certificates.load_or_create(tmp_path / "a", clock=START).ca == certificates.ca
    (tmp_path / "a" / name).unlink()
    Certificates.load_or_create(tmp_path / "a", clock=START).server_context()
    serving(tmp_path / "a").verify_directly_issued_by(
        x509.load_pem_x509_certificate(certificates.ca)
    )


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "tls.crt", "tls.key"])
def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path, name: str) -> None:
    Certificates.load_or_create(tmp_path, clock=START)
    (tmp_path / name).write_text("not PEM")
    with pytest.raises(ConfigurationError, match="delete that folder"):
        Certificates.load_or_create(tmp_path, clock=START)


def test_a_folder_that_cannot_be_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot keep the sandbox's certificates"):
        Certificates.load_or_create(tmp_path / "file" / "state", clock=START)


def test_a_strict_client_accepts_the_chain(tmp_path: Path) -> None:
    certificates = Certificates.load_or_create(tmp_path)
    context = ssl.create_default_context(cadata=certificates.ca.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    server = certificates.server_context().wrap_bio(outgoing, incoming, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.version() in ("TLSv1.2", "TLSv1.3")
