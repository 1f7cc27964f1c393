"""The cloud: files in a directory. It blocks, as many SDKs do."""

import json
import os
import tempfile
from pathlib import Path
from typing import TypedDict

SIZES = ("small", "large")


class Vm(TypedDict):
    """What stands in a VM's file."""

    cluster: str
    machine: str
    size: str
    initialized: bool


class WrongToken(Exception):
    """The cloud does not know the caller."""


class QuotaUsedUp(Exception):
    """The directory has all the VMs that it may have."""


class Cloud:
    """One account. If the directory has a file ``token``, callers must know what stands in it;
    a file ``quota`` limits the VMs."""

    def __init__(self, directory: Path, token: str) -> None:
        self._directory = directory
        wanted = directory / "token"
        if wanted.exists() and wanted.read_text().strip() != token:
            raise WrongToken

    def create(self, vm: Vm) -> Vm:
        """Make a VM, or return the one that has the name already."""
        if found := self.find(vm["cluster"], vm["machine"]):
            return found
        quota = self._directory / "quota"
        if quota.exists() and len(list(self._directory.glob("*.vm"))) >= int(quota.read_text()):
            raise QuotaUsedUp
        # A link appears whole or not at all, and the second of two callers is refused.
        with tempfile.NamedTemporaryFile("w", dir=self._directory) as draft:
            json.dump(vm, draft)
            draft.flush()
            try:
                os.link(draft.name, self._path(vm["cluster"], vm["machine"]))
            except FileExistsError:
                return self.find(vm["cluster"], vm["machine"]) or vm
        return vm

    def initialize(self, vm: Vm) -> None:
        path = self._path(vm["cluster"], vm["machine"])
        with tempfile.NamedTemporaryFile("w", dir=self._directory, delete=False) as draft:
            json.dump({**vm, "initialized": True}, draft)
        os.replace(draft.name, path)

    def find(self, cluster: str, machine: str) -> Vm | None:
        try:
            found: Vm = json.loads(self._path(cluster, machine).read_text())
        except FileNotFoundError:
            return None
        return found

    def delete(self, cluster: str, machine: str) -> None:
        self._path(cluster, machine).unlink(missing_ok=True)

    def of_cluster(self, cluster: str) -> list[Vm]:
        vms: list[Vm] = [json.loads(p.read_text()) for p in self._directory.glob("*.vm")]
        return [vm for vm in vms if vm["cluster"] == cluster]

    def _path(self, cluster: str, machine: str) -> Path:
        return self._directory / f"{cluster}.{machine}.vm"
