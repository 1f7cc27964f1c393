from __future__ import annotations

import base64

from mcm.api.core import Secret
from mcm.api.meta import ObjectMeta
from mcm.controllers.provider import collect, secret_keys_of
from tests.unit.machine.objects import class_

NONE: dict[str, Secret] = {}


def secret(name: str, version: str = "1", **data: str) -> Secret:
    return Secret(
        metadata=ObjectMeta(name=name, namespace="ns", resource_version=version),
        data={key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    )


def test_the_credentials_secret_overrides_the_other() -> None:
    secrets = {
        "ns/a": secret("a", userData="boot", key="old"),
        "ns/b": secret("b", "5", key="new"),
    }
    found = collect(class_(secret="a", credentials="b"), secrets.get)
    assert found.data == {"userData": b"boot", "key": b"new"}
    assert found.versions == ("ns/a@1", "ns/b@5")
    assert not found.problems


def test_a_class_without_secrets_needs_none() -> None:
    found = collect(class_(), NONE.get)
    assert not found.data and not found.problems
    assert secret_keys_of(class_()) == ()


def test_a_missing_secret_is_named_with_the_field_that_refers_to_it() -> None:
    found = collect(class_(credentials="b"), NONE.get)
    assert found.problems == (
        "secret ns/b not found: create it, or correct credentialsSecretRef of machine class ns/c",
    )


def test_a_value_that_is_no_base64_is_named_and_its_text_is_not() -> None:
    broken = Secret(metadata=ObjectMeta(name="a", namespace="ns"), data={"k": "%%%", "l": "eA=="})
    found = collect(class_(secret="a"), {"ns/a": broken}.get)
    assert found.problems == ("secret ns/a: data[k] is not base64",)
    assert found.data == {"l": b"x"}


def test_no_value_shows_in_the_repr() -> None:
    found = collect(class_(secret="a"), {"ns/a": secret("a", key="hunter2")}.get)
    assert "hunter2" not in repr(found)


def test_one_secret_for_both_is_one_key() -> None:
    assert secret_keys_of(class_(secret="a", credentials="a")) == ("ns/a",)
