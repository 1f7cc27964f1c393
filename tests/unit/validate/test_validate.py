"""`mcm validate`, from files to its last line."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.cli import main
from mcm.sandbox import samples as sandbox_samples
from mcm.validate.document import judged
from mcm.validate.finding import Document, Place
from mcm.validate.provider_specs import unchecked

POOL = """\
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineDeployment
metadata: {name: pool, namespace: ns}
spec:
  replicas: 3
  selector: {matchLabels: {name: pool}}
  template:
    metadata: {labels: {name: pool}}
    spec: {class: {kind: MachineClass, name: small}}
"""
CLASS = """\
apiVersion: machine.sapcloud.io/v1alpha1
kind: MachineClass
metadata: {name: small, namespace: ns}
providerSpec: {bootLatency: 1s}
secretRef: {name: cloud, namespace: ns}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: cloud, namespace: ns}
stringData: {password: hush-hush}
"""


def validate(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["validate", *arguments], input=stdin)


def lines(text: str, *arguments: str) -> list[str]:
    return validate("-f", "-", *arguments, stdin=text).stdout.splitlines()


def test_good_manifests_pass_in_silence(tmp_path: Path) -> None:
    file = tmp_path / "pool.yaml"
    file.write_text(f"{POOL}---\n{CLASS}---\n{SECRET}")
    result = validate("-f", str(file), "--strict", "--provider", "simulated")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "2 objects looked at: 0 errors, 0 warnings; not looked into: 1 Secret\n"


def test_an_input_without_objects_is_no_success(tmp_path: Path) -> None:
    for arguments in (("-f", "-"), ("-f", str(tmp_path))):
        result = validate(*arguments, stdin="---\n")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == "0 objects looked at: 0 errors, 0 warnings\n"


def test_the_samples_are_good() -> None:
    samples = Path(sandbox_samples.__file__).parent / "fleet"
    result = validate("-f", str(samples), "--strict", "--provider", "simulated")
    assert (result.exit_code, result.stdout) == (0, "")


def test_each_fault_is_a_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "pool.yaml"
    bad = POOL.replace("replicas: 3", "replicas: -3\n  minReadySecond: 5")
    file.write_text(f"{CLASS}---\n{bad}")
    result = validate("-f", str(file))
    assert result.exit_code == 1
    assert result.stdout == dedent(
        f"""\
        {file}:2 MachineDeployment/pool: error: spec.replicas: Invalid value -3: \
Replicas has to be a whole number
        {file}:2 MachineDeployment/pool: warning: spec.minReadySecond: \
there is no such field; is minReadySeconds meant?
        """
    )
    assert "2 objects looked at: 1 error, 1 warning" in result.stderr


def test_warnings_fail_only_if_that_is_wanted() -> None:
    text = POOL.replace("replicas: 3", "replicas: 3\n  progressDeadlineSeconds: 0")
    assert validate("-f", "-", stdin=text).exit_code == 0
    assert validate("-f", "-", "--strict", stdin=text).exit_code == 1


def test_json_says_the_same_for_programs() -> None:
    text = POOL.replace("replicas: 3", "replicas: 4")
    result = validate("-f", "-", "-o", "json", "--max-replicas", "3", stdin=text)
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {
            "file": "-",
            "document": 1,
            "kind": "MachineDeployment",
            "name": "pool",
            "severity": "error",
            "field": "spec.replicas",
            "problem": "Invalid value 4: must be at most 3, which --max-replicas allows",
        }
    ]


def test_lists_folders_and_json_are_read_too(tmp_path: Path) -> None:
    bad = {
        "apiVersion": "machine.sapcloud.io/v1alpha1",
        "kind": "Machine",
        "metadata": {"name": "m"},
        "spec": {},
    }
    (tmp_path / "a.json").write_text(json.dumps({"kind": "List", "items": [bad, bad]}))
    (tmp_path / "b.yml").write_text(POOL)
    (tmp_path / "notes.txt").write_text("replicas: -1")
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "c.yaml").write_text(POOL.replace("3", "-3"))
    said = validate("-f", str(tmp_path)).stdout.splitlines()
    places = [line.partition(" ")[0].rpartition("/")[2] for line in said]
    assert places == ["a.json:1", "a.json:1", "a.json:2", "a.json:2", "a.json:2"]
    assert "is at" in said[-1] and "spec.class.kind" in said[0]
    deeper = validate("-R", "-f", str(tmp_path)).stdout
    assert "c.yaml:1 MachineDeployment/pool: error: spec.replicas" in deeper


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\nb: }", "-: error: line 2, column 2: "),
        ("- 1\n- 2\n", "-: error: a manifest is a mapping"),
        ("[" * 5000, "-: error: "),
        ("kind: Machine\n", "-:1 Machine/?: error: apiVersion: Required value"),
        ("apiVersion: v1\n", "-:1 object/?: error: kind: Required value"),
        (POOL.replace("Deployment", "Deploiment"), "is MachineDeployment meant?"),
        (POOL.replace("v1alpha1", "v1"), "apiVersion: Invalid value"),
        (POOL.replace("machine.sapcloud.io", "apps"), "warning: apiVersion: "),
        (POOL.replace("name: pool, ", ""), "error: metadata.name: Required value"),
        (POOL.replace("name: pool, ", "name: A b, "), "error: metadata.name: Invalid value"),
        (POOL.replace("replicas: 3", "replicas: three"), "spec.replicas: Invalid value: Expected"),
        (POOL.replace("replicas: 3", "replicas: 1e30"), "error: spec.replicas: Invalid value"),
        (POOL.replace("labels: {name", "lables: {name"), "spec.template.metadata.lables: there"),
        (POOL.replace("spec: {class", "spec: {clas"), "spec.template.spec.clas: there is no such"),
        (
            POOL.replace("spec: {class", "spec: {nodeTemplate: {metadata: {label: {}}}, class"),
            "spec.template.spec.nodeTemplate.metadata.label: there is no such field; is labels",
        ),
        (POOL.replace("metadata: {", "metadata: {label: {}, "), "metadata.label: there is no"),
        (CLASS.replace("bootLatency: 1s", "1: x"), "is no JSON"),
        (CLASS.replace("provider", "providr"), "providrSpec: there is no such field"),
    ],
)
def test_what_cannot_be_meant_is_named(text: str, said: str) -> None:
    found = lines(text)
    assert any(said in line for line in found), found


def test_a_file_that_is_not_there_is_an_error_and_the_others_are_read(tmp_path: Path) -> None:
    result = validate("-f", str(tmp_path / "none.yaml"), "-f", "-", stdin=POOL.replace("3", "-3"))
    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first == f"{tmp_path / 'none.yaml'}: error: No such file or directory"
    assert second.startswith("-:1 MachineDeployment/pool: error: spec.replicas")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (POOL + "---\n" + CLASS.replace("small", "large"), 'spec.class.name: "small": is no class'),
        (CLASS + "---\n" + SECRET.replace("cloud", "other"), 'secretRef.name: "cloud": is no sec'),
        (POOL + "---\n" + POOL, 'metadata.name: "pool": is at -:1, too'),
        (
            POOL + "---\n" + POOL.replace("{name: pool, ", "{name: other, "),
            "selects the machines of MachineDeployment/other (-:2), too",
        ),
    ],
)
def test_documents_are_compared_with_one_another(text: str, said: str) -> None:
    found = lines(text)
    assert any(said in line and ": warning: " in line for line in found), found


def test_a_class_in_another_namespace_is_not_meant() -> None:
    elsewhere = CLASS.replace("namespace: ns}\nprovider", "namespace: else}\nprovider")
    (said,) = lines(f"{POOL}---\n{elsewhere}")
    assert "is no class of these files" in said
    nameless = POOL.replace(", namespace: ns", "")
    assert lines(f"{nameless}---\n{CLASS}", "-n", "ns") == []


def test_a_provider_judges_its_own_part_if_it_is_named() -> None:
    text = CLASS.replace("bootLatency: 1s", "bootLatency: soon")
    assert lines(text) == []
    (said,) = lines(text, "--provider", "simulated")
    assert said.startswith(
        "-:1 MachineClass/small: error: providerSpec: Invalid value: bootLatency"
    )
    result = validate("-f", "-", "--provider", "none-such", stdin=text)
    assert result.exit_code == 2 and "no machine provider named" in result.stderr


def test_nothing_of_a_secret_is_shown() -> None:
    broken = SECRET.replace("apiVersion: v1", "apiVersion: ") + "  hush-hush: [\n"
    for text in (SECRET + "---\n" + SECRET, broken):
        result = validate("-f", "-", stdin=text)
        assert "hush-hush" not in result.output


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
_kinds = st.sampled_from(["Machine", "MachineClass", "MachineSet", "MachineDeployment"])
_fields = st.sampled_from(
    ["metadata", "spec", "status", "providerSpec", "nodeTemplate", "secretRef", "replicas"]
)


@given(kind=_kinds, fields=st.dictionaries(_fields, _json))
def test_any_document_is_judged(kind: str, fields: JSONObject) -> None:
    body: JSONObject = {**fields, "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": kind}
    document, said = judged(Document(Place("x", 1), body), max_replicas=1, check=unchecked)
    assert isinstance(str(document), str)
    assert all(str(found) for found in said)
