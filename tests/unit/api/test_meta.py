from __future__ import annotations

import pytest

from mcm.api.core import NODES, PODS, SECRETS, Secret
from mcm.api.machine import MACHINES
from mcm.api.meta import ObjectMeta, OwnerReference, is_controlled_by, split_key


@pytest.mark.parametrize(("namespace", "name", "key"), [("ns", "m", "ns/m"), ("", "n", "n")])
def test_a_key_is_namespace_and_name(namespace: str, name: str, key: str) -> None:
    assert ObjectMeta(namespace=namespace, name=name).key == key
    assert split_key(key) == (namespace, name)


def test_only_the_owner_that_controls_counts() -> None:
    other = OwnerReference(api_version="v1", kind="Other", name="o", uid="1")
    owner = OwnerReference(api_version="v1", kind="MachineSet", name="s", uid="2", controller=True)
    owned = ObjectMeta(name="m", owner_references=(other, owner))
    assert owned.controller_ref() == owner
    assert is_controlled_by(owned, "2")
    assert not is_controlled_by(owned, "1")
    assert not is_controlled_by(ObjectMeta(name="m", owner_references=(other,)), "1")


def test_a_resource_knows_its_paths() -> None:
    assert MACHINES.api_version == "machine.sapcloud.io/v1alpha1"
    assert MACHINES.name == "machines.machine.sapcloud.io"
    machines = "/apis/machine.sapcloud.io/v1alpha1"
    assert MACHINES.path() == f"{machines}/machines"
    assert MACHINES.path("ns", "m", "status") == f"{machines}/namespaces/ns/machines/m/status"
    assert PODS.path("ns", "a b/c") == "/api/v1/namespaces/ns/pods/a%20b%2Fc"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert (NODES.api_version, NODES.name) == ("v1", "nodes")


def test_a_secret_does_not_show_its_data() -> None:
    secret = Secret(
        metadata=ObjectMeta(name="s", namespace="ns"), data={"password": "aHVudGVyMg=="}
    )
    assert repr(secret) == "Secret('ns/s', keys=['password'])"
    assert "aHVudGVyMg" not in f"{secret} {[secret]}"
    assert SECRETS.type is Secret
