"""Bodies that are small on the wire and huge, deep or nonsense once they are read."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.sandbox.apiserver.errors import StatusError
from mcm.sandbox.apiserver.limits import (
    DEEPEST,
    LARGEST_ANNOTATIONS,
    LARGEST_BODY,
    MOST_YAML_VALUES,
    is_deeper_than,
)
from mcm.sandbox.apiserver.requests.documents import decode_document
from tests.unit.sandbox_core.workbench import (
    APPLY,
    CONFIG_MAPS,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    WIDGETS,
    Answer,
    Document,
    Workbench,
    config_map,
    widget,
    widget_definition,
)

YAML = "application/yaml"
HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


def post(api: Workbench, text: str) -> Answer:
    return api.send("POST", CONFIG_MAPS, text.encode(), media=YAML)


def refused(answer: Answer, words: str, code: int = 400, reason: str = "BadRequest") -> None:
    assert (answer.status, answer.body["reason"]) == (code, reason), answer.text[:500]
    assert words in answer.body["message"]


def bomb(leaf: str, width: int, levels: int, *, merged: bool = False) -> str:
    """Each level says the one below ``width`` times."""
    lines = [f"l0: &l0 {leaf}"]
    for level in range(1, levels):
        below = ", ".join([f"*l{level - 1}"] * width)
        lines.append(f"l{level}: &l{level} " + (f"{{<<: [{below}]}}" if merged else f"[{below}]"))
    return HEAD + "\n".join(lines) + "\n"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def defined(schema: Document) -> Document:
    return widget_definition(schema={"openAPIV3Schema": schema})


# YAML -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(bomb("[x, x, x, x, x, x, x, x, x]", 9, 9), id="lists of lists"),
        pytest.param(bomb("{a: x, b: x}", 9, 9, merged=True), id="merged mappings"),
        pytest.param(bomb("x" * 100_000, 40, 2), id="one long text, often"),
    ],
)
def test_aliases_may_not_multiply_beyond_what_a_body_may_be(api: Workbench, text: str) -> None:
    assert len(text) < 110_000
    refused(post(api, text), "document contains excessive aliasing")
    assert api.names(CONFIG_MAPS) == []


def test_an_alias_inside_its_own_anchor_is_refused(api: Workbench) -> None:
    refused(post(api, f"{HEAD}x: &a [*a]\n"), "anchor 'a' value contains itself")
    refused(post(api, f"{HEAD}x: [*a]\n"), "unknown anchor 'a' referenced")


def test_aliases_and_merges_of_everyday_size_mean_what_they_say(api: Workbench) -> None:
    meta = "{name: c, labels: &l {a: b}, annotations: {<<: *l, c: d}}"
    answer = post(api, f"apiVersion: v1\nkind: ConfigMap\nmetadata: {meta}\ndata: *l\n")
    assert answer.status == 201
    assert answer.body["data"] == answer.body["metadata"]["labels"] == {"a": "b"}
    assert answer.body["metadata"]["annotations"] == {"a": "b", "c": "d"}


@pytest.mark.parametrize(
    "deep",
    [
        "[" * 20_000 + "]" * 20_000,
        "{a: " * 5_000 + "1" + "}" * 5_000,
        "\n" + "- " * 20_000 + "x",
        "[" * (DEEPEST - 1) + "&a [1], *a" + "]" * (DEEPEST - 1),
    ],
    ids=["lists", "mappings", "blocks", "by an alias"],
)
def test_deep_yaml_is_refused(api: Workbench, deep: str) -> None:
    refused(post(api, f"{HEAD}x: {deep}\n"), f"exceeded max depth of {DEEPEST}")


def test_an_alias_counts_its_depth_where_it_stands(api: Workbench) -> None:
    half = DEEPEST // 2
    anchor = "&a " + "[" * half + "]" * half
    fits = f"{HEAD}x: {anchor}\ny: {'[' * (half - 1)}*a{']' * (half - 1)}\n"
    assert post(api, fits).status == 201
    refused(post(api, fits.replace("*a", "[*a]")), "exceeded max depth")


def test_yaml_of_very_many_values_is_refused(api: Workbench) -> None:
    many = ", ".join(["1"] * MOST_YAML_VALUES)
    refused(post(api, f"{HEAD}x: [{many}]\n"), "send JSON")


def test_only_the_first_document_counts(api: Workbench) -> None:
    assert post(api, f"{HEAD}---\nkind: [\n").status == 201
    assert post(api, "---\n---\n").status == 400


@pytest.mark.parametrize(
    "value", ["!!int abc", "!!bool abc", "!!timestamp abc", "!!binary =", "? [a]"]
)
def test_a_tag_that_does_not_fit_is_the_clients_fault(api: Workbench, value: str) -> None:
    refused(post(api, f"{HEAD}x: {value}\n"), "error decoding the body")


@given(st.one_of(st.binary(max_size=60), st.text("[]{}:-,&*!<|>?#%a1 \n\t'\"", max_size=60)))
def test_no_body_does_more_than_be_refused(body: bytes | str) -> None:
    with suppress(StatusError):
        value = decode_document(body if isinstance(body, bytes) else body.encode())
        assert orjson.loads(orjson.dumps(value)) == value


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=20,
)


@given(json_values)
def test_json_reads_as_itself(value: Any) -> None:
    assert decode_document(orjson.dumps(value)) == value


# JSON -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [250, 1000, 20_000])
@pytest.mark.parametrize("verb", ["create", "update", "merge", "json patch", "apply"])
def test_deep_json_is_refused(api: Workbench, verb: str, depth: int) -> None:
    api.create(CONFIG_MAPS, config_map("c"))
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    whole = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"x":%s}' % deep
    match verb:
        case "create":
            answer = api.send("POST", CONFIG_MAPS, whole)
        case "update":
            answer = api.send("PUT", f"{CONFIG_MAPS}/c", whole)
        case "merge":
            answer = api.send("PATCH", f"{CONFIG_MAPS}/c", b'{"x":%s}' % deep, media=MERGE)
        case "json patch":
            operations = b'[{"op":"add","path":"/x","value":%s}]' % deep
            answer = api.send("PATCH", f"{CONFIG_MAPS}/c", operations, media=JSON_PATCH)
        case _:
            answer = api.send(
                "PATCH", f"{CONFIG_MAPS}/c", whole, media=APPLY, fieldManager="somebody"
            )
    refused(answer, "error decoding the body")


async def test_the_deepest_object_lives_through_every_verb(api: Workbench) -> None:
    api.define_widgets(schema={"openAPIV3Schema": ANYTHING})
    deepest = widget("w", more=nested(DEEPEST - 2))
    spec = deepest["spec"]
    assert not is_deeper_than(deepest, DEEPEST) and is_deeper_than({"a": deepest}, DEEPEST)
    watcher = api.watch(WIDGETS)
    assert api.create(WIDGETS, deepest)["spec"] == spec
    path = f"{WIDGETS}/w"
    changed = api.patch(path, {"metadata": {"labels": {"a": "b"}}})
    api.put(path, {**changed, "metadata": {**changed["metadata"], "labels": {"a": "c"}}})
    api.patch(path, deepest, media=APPLY, fieldManager="applier", force="true")
    add = [{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]
    api.patch(path, add, media=JSON_PATCH)
    assert api.get(WIDGETS)["items"][0]["spec"] == spec
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    assert api.get(WIDGETS, accept=table, includeObject="Object")["rows"]
    api.delete(path)
    events = await watcher.take(6)
    assert [kind for kind, _ in events] == ["ADDED", *["MODIFIED"] * 4, "DELETED"]


def test_a_definition_as_deep_as_can_be_is_served(api: Workbench) -> None:
    schema: Document = {"type": "integer"}
    while not is_deeper_than(defined(schema), DEEPEST - 2):
        schema = {"type": "object", "properties": {"a": schema}}
    api.create(DEFINITIONS, defined(schema))
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.toys.example"
    api.patch(path, {"metadata": {"labels": {"a": "b"}}})
    assert api.create(WIDGETS, widget("w", a=nested(60)))["kind"] == "Widget"
    assert api.get("/openapi/v3/apis/toys.example/v1")["components"]
    assert api.get("/openapi/v2")["definitions"]


def test_copies_of_copies_do_not_multiply(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("c", text="y" * 1000))
    copies = [{"op": "copy", "from": "/data", "path": f"/data/c{i}"} for i in range(40)]
    answer = api.send("PATCH", f"{CONFIG_MAPS}/c", copies, media=JSON_PATCH)
    refused(answer, f"more than {LARGEST_BODY} bytes", 422, "Invalid")


def test_copies_do_not_deepen_without_end(api: Workbench) -> None:
    api.create(CONFIG_MAPS, config_map("c"))
    deepen: list[Document] = [
        {"op": "add", "path": "/x" + "/a" * level, "value": {}} for level in range(DEEPEST + 50)
    ]
    answer = api.send("PATCH", f"{CONFIG_MAPS}/c", deepen, media=JSON_PATCH)
    refused(answer, "max depth", 422, "Invalid")
    doubled: list[Document] = [
        {"op": "copy", "from": "/x", "path": "/x" + "/a" * (1 << level)} for level in range(12)
    ]
    doubled.insert(0, {"op": "add", "path": "/x", "value": {}})
    answer = api.send("PATCH", f"{CONFIG_MAPS}/c", doubled, media=JSON_PATCH)
    refused(answer, "max depth", 422, "Invalid")


# Annotations and numbers ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "annotations",
    [
        {"k": "x" * LARGEST_ANNOTATIONS},
        {"k": "ä" * (LARGEST_ANNOTATIONS // 2)},
        {f"k{i}": "x" * (LARGEST_ANNOTATIONS // 4) for i in range(4)},
    ],
)
def test_annotations_have_a_size_together(api: Workbench, annotations: dict[str, str]) -> None:
    fits = config_map("c")
    fits["metadata"]["annotations"] = {"k": "x" * (LARGEST_ANNOTATIONS - 1)}
    api.create(CONFIG_MAPS, fits)
    change = {"metadata": {"annotations": {"k": None, **annotations}}}
    answer = api.send("PATCH", f"{CONFIG_MAPS}/c", change, media=MERGE)
    refused(answer, "metadata.annotations: Too long", 422, "Invalid")
    assert answer.body["details"]["causes"] == [
        {
            "reason": "FieldValueTooLong",
            "message": "Too long: may not be more than 262144 bytes",
            "field": "metadata.annotations",
        }
    ]
    other = config_map("d")
    other["metadata"]["annotations"] = annotations
    refused(api.send("POST", CONFIG_MAPS, other), "Too long", 422, "Invalid")


@pytest.mark.parametrize("number", ["--5", "5_0", "٥", "1" * 5000, str(1 << 63), "0x5", "5.0"])
def test_what_is_no_whole_number_of_64_bits_is_refused(api: Workbench, number: str) -> None:
    refused(api.send("GET", CONFIG_MAPS, limit=number), "limit")


@pytest.mark.parametrize("number", ["-5", "-0", "0", str((1 << 63) - 1)])
def test_a_limit_that_is_none_lists_everything(api: Workbench, number: str) -> None:
    for name in "abc":
        api.create(CONFIG_MAPS, config_map(name))
    listed = api.get(CONFIG_MAPS, limit=number)
    assert len(listed["items"]) == 3 and "continue" not in listed["metadata"]
    assert len(api.get(CONFIG_MAPS, limit="+2")["items"]) == 2


def test_json_is_what_the_depth_is_counted_of() -> None:
    for value, depth in ((1, 0), ({}, 1), ([], 1), ({"a": [{}]}, 3), ([1, [2], {"a": 3}], 2)):
        assert not is_deeper_than(value, depth)
        assert not depth or is_deeper_than(value, depth - 1)
        assert json.dumps(value)
