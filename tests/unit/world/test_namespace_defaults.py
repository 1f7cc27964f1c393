from __future__ import annotations

from functools import partial

from tests.unit.world.rig import Rig, name_of, on_rig

CERTIFICATE = "kube-root-ca.crt"


def _has_both(rig: Rig, namespace: str) -> bool:
    accounts = rig.server.objects("", "serviceaccounts", namespace)
    maps = rig.server.objects("", "configmaps", namespace)
    return len(accounts) == 1 and len(maps) == 1


def test_every_namespace_has_an_account_and_a_certificate() -> None:
    async def scenario(rig: Rig) -> None:
        meta = {"name": "mine"}
        await rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        for namespace in ("default", "kube-system", "mine"):
            await rig.until(partial(_has_both, rig, namespace), within=1)
        assert name_of(rig.server.objects("", "serviceaccounts", "mine")[0]) == "default"

    on_rig(scenario)


def test_what_somebody_deletes_comes_back_but_not_with_the_namespace() -> None:
    async def scenario(rig: Rig) -> None:
        meta = {"name": "mine"}
        await rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        await rig.until(lambda: _has_both(rig, "mine"), within=1)
        first = rig.server.objects("", "configmaps", "mine")[0]
        await rig.delete(f"/api/v1/namespaces/mine/configmaps/{CERTIFICATE}")
        await rig.until(lambda: _has_both(rig, "mine"), within=1)
        assert rig.server.objects("", "configmaps", "mine")[0] != first
        await rig.delete("/api/v1/namespaces/mine")
        await rig.until(lambda: "mine" not in rig.names("namespaces"), within=5)
        assert rig.server.objects("", "serviceaccounts", "mine") == []

    on_rig(scenario)
