"""``mcm vm``, on the worked example's cloud: files that outlive each command."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mcm.cli import main
from mcm.driver import (
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    UnsupportedDriver,
    UpdateMachineRequest,
    UpdateMachineResponse,
)

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "provider-directory"
TOKEN = "open sesame, please"
Vm = Callable[..., Result]


@pytest.fixture
def cloud(tmp_path: Path) -> Path:
    (tmp_path / "cloud").mkdir()
    (tmp_path / "cloud" / "token").write_text(TOKEN)
    return tmp_path / "cloud"


@pytest.fixture
def class_file(cloud: Path, tmp_path: Path) -> Path:
    manifest = yaml.safe_load((EXAMPLE / "class.yaml").read_text())
    manifest["providerSpec"]["directory"] = str(cloud)
    path = tmp_path / "class.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return path


@pytest.fixture
def vm(class_file: Path, monkeypatch: pytest.MonkeyPatch) -> Vm:
    """Runs ``mcm vm VERB``, with the example's class and Secret if none is given."""
    monkeypatch.syspath_prepend(EXAMPLE)
    from mcm_provider_directory import create  # type: ignore[import-not-found]

    monkeypatch.setattr("mcm.vm.command.load_provider", lambda name: create)

    def run(verb: str, *arguments: str, secret: Path | None = None) -> Result:
        files = [
            "--machineclass",
            str(class_file),
            "--secret",
            str(secret or EXAMPLE / "secret.yaml"),
        ]
        return CliRunner().invoke(main, ["vm", verb, "--provider=directory", *files, *arguments])

    return run


def vms_in(cloud: Path) -> list[str]:
    return sorted(path.name for path in cloud.glob("*.vm"))


def test_a_vm_s_life(vm: Vm, cloud: Path) -> None:
    assert vm("status", "--machinename=test").exit_code == 1
    created = vm("create", "--machinename=test")
    assert created.output == (
        "created: test\n  provider ID  directory:///ours/test\n  node name    test\n"
    )
    assert vms_in(cloud) == ["ours.test.vm"]
    found = vm("status", "--machinename=test", "--machineid=directory:///ours/test", "-o", "json")
    assert json.loads(found.output) == {
        "machineName": "test",
        "providerID": "directory:///ours/test",
        "nodeName": "test",
        "initialized": True,
    }
    listed = vm("list")
    assert listed.output.splitlines()[1].split() == ["directory:///ours/test", "test"]
    assert json.loads(vm("list", "-o", "json").output) == {"directory:///ours/test": "test"}
    assert vm("delete", "--machinename=test").output == "deleted: test\n"
    assert vm("delete", "--machinename=test").exit_code == 0
    assert vms_in(cloud) == []


def test_a_vm_is_found_and_deleted_by_its_id_alone(vm: Vm, cloud: Path) -> None:
    vm("create", "--machinename=test")
    by_id = "--machineid=directory:///ours/test"
    assert vm("status", by_id).output.startswith("found: test\n")
    assert vm("delete", by_id).output == "deleted: test\n"
    assert vms_in(cloud) == []
    lost = vm("delete", by_id)
    assert lost.exit_code == 1
    assert "the class has no VM directory:///ours/test" in lost.stderr
    assert lost.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["status", "delete", "update"])
def test_without_name_and_id_nothing_is_asked(vm: Vm, verb: str) -> None:
    refused = vm(verb)
    assert refused.exit_code == 2
    assert "one of --machinename and --machineid is needed" in refused.stderr


class Updatable(UnsupportedDriver):
    """A cloud that brings VMs to what their class says; it has all of them."""

    async def get_machine_status(
        self, request: GetMachineStatusRequest
    ) -> GetMachineStatusResponse:
        return GetMachineStatusResponse("cloud:///a", "a")

    async def update_machine(self, request: UpdateMachineRequest) -> UpdateMachineResponse:
        return UpdateMachineResponse()


def test_an_update_says_which_fields_changed_and_not_to_what(
    vm: Vm, class_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcm.vm.command.load_provider", lambda name: lambda context: Updatable())
    before = tmp_path / "before.yaml"
    for path, spec in (
        (before, {"size": "s", "tags": {"a": "1", "b": "2"}}),
        (class_file, {"size": "s", "tags": {"a": "secretive"}, "zone": "z"}),
    ):
        manifest = {"kind": "MachineClass", "metadata": {"name": "a"}, "providerSpec": spec}
        path.write_text(yaml.safe_dump(manifest))
    told = vm("update", "--machinename=test", "--last-applied", str(before))
    assert told.output.splitlines()[-1] == "  changed      tags.a, tags.b, zone"
    assert "secretive" not in told.output
    as_json = vm("update", "--machinename=test", "--last-applied", str(before), "-o", "json")
    assert json.loads(as_json.output)["changed"] == ["tags.a", "tags.b", "zone"]
    assert "changed" not in vm("update", "--machinename=test").output


def test_what_is_not_initialized_is_found_and_called_so(vm: Vm) -> None:
    vm("create", "--machinename=test", "--no-initialize")
    assert "not initialized" in vm("status", "--machinename=test").output
    assert "not initialized" not in vm("create", "--machinename=test").output


def test_a_refusal_is_one_line_with_its_code_and_without_the_secret(vm: Vm, tmp_path: Path) -> None:
    secret = tmp_path / "wrong.yaml"
    secret.write_text("kind: Secret\nstringData: {token: abracadabra-abracadabra}\n")
    refused = vm("create", "--machinename=test", secret=secret)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("mcm: machine codes error: code = [Unauthenticated]")
    assert refused.stderr.count("\n") == 1
    assert "abracadabra" not in refused.output


def test_a_provider_without_the_verb_says_so(vm: Vm) -> None:
    vm("create", "--machinename=test")
    refused = vm("update", "--machinename=test")
    assert refused.exit_code == 1
    assert "Unimplemented" in refused.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: MachineClass\nproviderSpec: [\n", "line 3, column 1: "),
        ("kind: Machine\n", "exactly one MachineClass is expected; there is: Machine"),
        ("", "exactly one MachineClass is expected; there is: nothing"),
        ("- 1\n", "a manifest is a mapping with apiVersion and kind"),
        ("kind: MachineClass\nproviderSpec: 7\nmetadata: {name: a}\n", "providerSpec"),
        ("kind: MachineClass\nmetadata: {name: a}\n1: 2\n", "str"),
    ],
)
def test_a_bad_class_is_one_line_naming_the_file(
    vm: Vm, class_file: Path, text: str, complaint: str
) -> None:
    class_file.write_text(text)
    refused = vm("list")
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"mcm: {class_file}: ")
    assert complaint in refused.stderr
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: Secret\ndata: {token: hunter2!}\n", "data.token is not base64"),
        ("kind: Secret\nstringData: {token: 1234567}\n", "stringData.token must be a text"),
        ("kind: Secret\ndata: [hunter2]\n", "data must be a mapping"),
        ("kind: Secret\nstringData: {token: 'hunter2\n", "line "),
        ("kind: ConfigMap\n", "exactly one Secret is expected; there is: ConfigMap"),
    ],
)
def test_a_bad_secret_is_one_line_that_shows_no_value(
    vm: Vm, tmp_path: Path, text: str, complaint: str
) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text(text)
    refused = vm("list", secret=secret)
    assert refused.exit_code == 1
    assert complaint in refused.stderr
    assert "hunter2" not in refused.stderr
    assert "1234567" not in refused.stderr


def test_several_secrets_are_merged_and_the_later_ones_override(vm: Vm, tmp_path: Path) -> None:
    later = tmp_path / "later.yaml"
    token = base64.b64encode(TOKEN.encode()).decode()
    later.write_text(f"kind: Secret\ndata: {{token: {token}}}\n")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("kind: Secret\nstringData: {token: wrong}\n")
    assert vm("list", secret=wrong).exit_code == 1
    assert vm("list", "--secret", str(later), secret=wrong).exit_code == 0


def test_a_missing_file_and_an_unknown_provider_are_named(class_file: Path) -> None:
    secret = str(EXAMPLE / "secret.yaml")
    files = ["--machineclass", str(class_file), "--secret", secret]
    missing = CliRunner().invoke(main, ["vm", "list", *files[:3], "/nowhere/secret.yaml"])
    assert missing.stderr == "mcm: /nowhere/secret.yaml: No such file or directory\n"
    unknown = CliRunner().invoke(main, ["vm", "list", *files, "--provider=nobody"])
    assert unknown.exit_code == 1
    assert "no machine provider named 'nobody'" in unknown.stderr


def test_a_cloud_that_is_a_cluster_asks_for_one(class_file: Path) -> None:
    class_file.write_text("kind: MachineClass\nmetadata: {name: a}\nproviderSpec: {}\n")
    files = ["--machineclass", str(class_file), "--secret", str(EXAMPLE / "secret.yaml")]
    refused = CliRunner().invoke(main, ["vm", "list", *files])
    assert refused.exit_code == 1
    assert "use --kubeconfig" in refused.stderr


def test_only_the_generic_class_kind_is_known(vm: Vm) -> None:
    refused = vm("list", "--classkind=AWSMachineClass")
    assert refused.stderr == (
        "mcm: --classkind: only MachineClass is known here, not 'AWSMachineClass'\n"
    )
