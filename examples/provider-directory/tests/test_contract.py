"""The driver keeps mcm's contract: every rule of the conformance kit is one test."""

from pathlib import Path

import pytest
from mcm_provider_directory.driver import DirectoryDriver

from mcm.api.machine import MachineClass
from mcm.api.meta import ObjectMeta
from mcm.conformance import DriverContract, Refusal, Subject
from mcm.driver import Code

TOKEN = b"open sesame, please"


def class_in(directory: Path, **fields: str) -> MachineClass:
    return MachineClass(
        metadata=ObjectMeta(name="small", namespace="default"),
        provider_spec={"directory": str(directory), "cluster": "ours", **fields},
    )


class TestContract(DriverContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        (tmp_path / "token").write_bytes(TOKEN)
        full = tmp_path / "full"
        full.mkdir()
        (full / "quota").write_text("0")
        return Subject(
            new_driver=DirectoryDriver,
            machine_class=class_in(tmp_path),
            secret={"token": TOKEN},
            neighbour=class_in(tmp_path, cluster="theirs"),
            refusals=[
                Refusal(
                    when="the size is unknown",
                    codes=frozenset({Code.INVALID_ARGUMENT}),
                    machine_class=class_in(tmp_path, size="enormous"),
                ),
                Refusal(
                    when="the token is wrong",
                    codes=frozenset({Code.UNAUTHENTICATED}),
                    secret={"token": b"abracadabra"},
                ),
                Refusal(
                    when="the quota is used up",
                    codes=frozenset({Code.RESOURCE_EXHAUSTED}),
                    machine_class=class_in(full),
                ),
            ],
        )
