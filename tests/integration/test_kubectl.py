"""kubectl against the sandbox: finding one's way, creating and changing objects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.integration.kubectl import Kubectl
from tests.integration.manifests import MACHINES, config_map, deployment, rows, widget_definition

pytestmark = pytest.mark.kubectl


def test_version_names_the_server(kubectl: Kubectl) -> None:
    assert re.search(r"Server Version: v1\.\d+\.\d+", kubectl("version"))


def test_api_resources_lists_built_in_and_custom_kinds(kubectl: Kubectl) -> None:
    listed = kubectl("api-resources", "--no-headers").splitlines()
    kinds = {line.split()[-1] for line in listed}
    assert {"Pod", "Node", "Lease", "MachineDeployment", "PodDisruptionBudget"} <= kinds
    assert MACHINES in kubectl("api-versions").splitlines()
    verbs = kubectl("api-resources", "--api-group=machine.sapcloud.io", "-o", "wide")
    assert "create,delete,deletecollection,get,list,patch,update,watch" in verbs


def test_short_names_plurals_and_categories_are_understood(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment())
    for name in ("mcd", "machinedeployment", "machinedeployments", f"mcd.{MACHINES[:19]}"):
        assert kubectl("get", name, "-o", "name").endswith("/d\n"), name
    kubectl("create", "service", "clusterip", "s", "--tcp=80:8080")
    assert "service/s" in kubectl("get", "all")


def test_create_makes_each_built_in_kind_and_refuses_a_second(kubectl: Kubectl) -> None:
    for command in (
        ["configmap", "c", "--from-literal=a=1"],
        ["secret", "generic", "s", "--from-literal=a=1"],
        ["serviceaccount", "sa"],
        ["deployment", "d", "--image=i", "--replicas=2", "--port=80", "--", "run", "it"],
        ["pdb", "p", "--selector=app=d", "--min-available=1"],
        ["service", "nodeport", "n", "--tcp=80:web"],
    ):
        assert kubectl("create", *command).endswith(" created\n")
    assert kubectl.json("get", "secret", "s")["data"] == {"a": "MQ=="}
    assert kubectl.json("get", "pdb", "p")["spec"]["minAvailable"] == 1
    spec = kubectl.json("get", "deployment", "d")["spec"]
    assert spec["replicas"] == 2
    container = spec["template"]["spec"]["containers"][0]
    assert (container["image"], container["command"]) == ("i", ["run", "it"])
    assert container["ports"] == [{"containerPort": 80}]
    assert "already exists" in kubectl.fails("create", "configmap", "c")


def test_create_takes_yaml_with_many_documents_and_generated_names(kubectl: Kubectl) -> None:
    generated = {**config_map("x"), "metadata": {"generateName": "gen-"}}
    out = kubectl("create", "-f", "-", stdin=[config_map("a"), generated])
    assert re.fullmatch(r"configmap/a created\nconfigmap/gen-\w{5} created\n", out)


def test_an_unknown_field_fails_a_strict_write_and_warns_otherwise(kubectl: Kubectl) -> None:
    manifest = deployment(colour="red")
    assert 'unknown field "spec.colour"' in kubectl.fails("apply", "-f", "-", stdin=manifest)
    outcome = kubectl.run("apply", "--validate=warn", "-f", "-", stdin=manifest)
    assert outcome.code == 0
    assert 'Warning: unknown field "spec.colour"' in outcome.err
    assert "colour" not in kubectl.json("get", "mcd", "d")["spec"]


def test_an_invalid_value_is_refused_with_its_field(kubectl: Kubectl) -> None:
    complaint = kubectl.fails("create", "-f", "-", stdin=deployment(replicas="many"))
    assert "spec.replicas" in complaint
    assert 'must be of type integer: "string"' in complaint


def test_edit_saves_what_the_editor_leaves(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/replicas: 3/replicas: 6/" "$1"\n')
    editor.chmod(0o755)
    edited = kubectl.with_environment(KUBE_EDITOR=str(editor))("edit", "mcd", "x")
    assert edited.endswith(" edited\n")
    assert kubectl.json("get", "mcd", "x")["spec"]["replicas"] == 6
    editor.write_text("#!/bin/sh\n")
    same = kubectl.with_environment(KUBE_EDITOR=str(editor)).run("edit", "mcd", "x")
    assert same.code == 0 and "no changes made" in same.err


def test_patch_works_in_its_three_types(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[deployment("x"), config_map("c", a="1")])
    kubectl("patch", "mcd", "x", "--type=merge", "-p", '{"spec":{"paused":true}}')
    assert kubectl.json("get", "mcd", "x")["spec"]["paused"] is True
    same = kubectl("patch", "mcd", "x", "--type=merge", "-p", '{"spec":{"paused":true}}')
    assert same.endswith(" patched (no change)\n")
    test_then_replace = (
        '[{"op":"test","path":"/spec/replicas","value":3},'
        '{"op":"replace","path":"/spec/replicas","value":2}]'
    )
    kubectl("patch", "mcd", "x", "--type=json", "-p", test_then_replace)
    assert kubectl.json("get", "mcd", "x")["spec"]["replicas"] == 2
    assert "testing value" in kubectl.fails(
        "patch", "mcd", "x", "--type=json", "-p", test_then_replace
    )
    kubectl("patch", "cm", "c", "-p", '{"data":{"a":null,"b":"2"}}')
    assert kubectl.json("get", "cm", "c")["data"] == {"b": "2"}
    assert "not supported" in kubectl.fails("patch", "mcd", "x", "-p", '{"spec":{}}')


def test_the_status_is_written_apart(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    status = '{"spec":{"replicas":9},"status":{"readyReplicas":2}}'
    kubectl("patch", "mcd", "x", "--subresource=status", "--type=merge", "-p", status)
    found = kubectl.json("get", "mcd", "x")
    assert found["status"]["readyReplicas"] == 2 and found["spec"]["replicas"] == 3
    assert kubectl.json("get", "mcd", "x", "--subresource=scale")["kind"] == "Scale"


def test_label_and_annotate_add_change_and_remove(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "c")
    kubectl("label", "cm", "c", "a=1", "b=2")
    assert "already has a value" in kubectl.fails("label", "cm", "c", "a=9")
    kubectl("label", "cm", "c", "a=9", "b-", "--overwrite")
    kubectl("annotate", "cm", "c", "note=hello")
    metadata = kubectl.json("get", "cm", "c")["metadata"]
    assert (metadata["labels"], metadata["annotations"]) == ({"a": "9"}, {"note": "hello"})
    kubectl("annotate", "cm", "c", "note-")
    assert "annotations" not in kubectl.json("get", "cm", "c")["metadata"]


def test_replace_needs_the_version_it_read(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    read = kubectl.json("get", "mcd", "x")
    read["spec"]["replicas"] = 1
    assert kubectl("replace", "-f", "-", stdin=read).endswith(" replaced\n")
    assert "Conflict" in kubectl.fails("replace", "-f", "-", stdin=read)
    assert kubectl("replace", "--force", "-f", "-", stdin=read).endswith(" replaced\n")


def test_scale_moves_custom_and_built_in_kinds(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    kubectl("create", "deployment", "w", "--image=i")
    for name in ("mcd/x", "deployment/w"):
        assert kubectl("scale", name, "--replicas=4").endswith(" scaled\n")
        assert kubectl("get", name, "-o", "jsonpath={.spec.replicas}") == "4"
    complaint = kubectl.fails("scale", "mcd/x", "--current-replicas=9", "--replicas=1")
    assert "Expected replicas to be 9, was 4" in complaint


def test_a_definition_brings_a_kind_and_takes_it_away(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=widget_definition())
    assert "condition met" in kubectl(
        "wait", "--for=condition=Established", "crd/widgets.example.com"
    )
    widget = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {},
    }
    kubectl("apply", "-f", "-", stdin=widget)
    assert rows(kubectl("get", "wd")) == [["w", "7"]]
    complaint = kubectl.fails("apply", "-f", "-", stdin={**widget, "spec": {"size": 10}})
    assert "should be less than or equal to 9" in complaint
    kubectl("delete", "crd", "widgets.example.com")
    assert "could not find the requested resource" in kubectl.fails("get", "wd")
