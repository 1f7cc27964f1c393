"""Volumes of a pod as folders: what its Secrets and ConfigMaps hold, and its account's token."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import final

from tests.envtest.bench import Bench, Document
from tests.envtest.installation.container import Mount

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@final
class Volumes:
    """Read from the server as ``admin``; ``ca`` is what pods trust the server by."""

    def __init__(self, admin: Bench, ca: bytes) -> None:
        self._admin = admin
        self._ca = ca

    async def mounts(self, pod: Document, folder: Path) -> list[Mount]:
        """Make them below ``folder``. Raises AssertionError while what they hold is missing."""
        spec, found = pod["spec"], []
        (container,) = spec["containers"]
        volumes = {volume["name"]: volume for volume in spec.get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            volume, place = volumes[mount["name"]], folder / "volumes" / mount["name"]
            mode = volume.get("secret", {}).get("defaultMode", 0o644)
            files = await self._files(volume, pod["metadata"]["namespace"])
            _fill(place, files, pod, mode=mode, writable="emptyDir" in volume)
            found.append(Mount(place, mount["mountPath"], bool(mount.get("readOnly"))))
        if spec.get("automountServiceAccountToken", True):
            place = folder / "volumes" / "service-account"
            _fill(place, await self._account(pod), pod, mode=0o440)
            found.append(Mount(place, _ACCOUNT, read_only=True))
        return found

    async def _files(self, volume: Document, namespace: str) -> dict[str, bytes]:
        core = f"/api/v1/namespaces/{namespace}"
        if "configMap" in volume:
            found = await self._admin.get(f"{core}/configmaps/{volume['configMap']['name']}")
            return {name: text.encode() for name, text in found["data"].items()}
        if "secret" in volume:
            found = await self._admin.get(f"{core}/secrets/{volume['secret']['secretName']}")
            return {name: base64.b64decode(text) for name, text in found["data"].items()}
        assert "emptyDir" in volume, volume
        return {}

    async def _account(self, pod: Document) -> dict[str, bytes]:
        namespace, account = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}"
        token = await token_of(self._admin, path)
        return {"token": token.encode(), "ca.crt": self._ca, "namespace": namespace.encode()}


async def token_of(admin: Bench, account: str) -> str:
    """Return a token for the service account at this path, as a pod gets one."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    found = await admin.create(f"{account}/token", request)
    return str(found["status"]["token"])


def _fill(
    place: Path, files: Mapping[str, bytes], pod: Document, *, mode: int, writable: bool = False
) -> None:
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o777 if writable else 0o755)
    for name, content in files.items():
        path = place / name
        path.write_bytes(content)
        os.chown(path, 0, pod["spec"]["securityContext"]["fsGroup"])
        path.chmod(mode)
