"""What stands in manifest files, as objects."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from mcm.client.errors import ConfigurationError
from mcm.manifest_files import STANDARD_INPUT, documents


def read(tmp_path: Path, text: str) -> list[object]:
    file = tmp_path / "objects.yaml"
    file.write_text(text)
    return list(documents(file))


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", []),
        ("# nothing\n---\n---\n", []),
        ("kind: A\n---\nkind: B\n", ["A", "B"]),
        ('{"kind": "A"}', ["A"]),
        ("kind: List\nitems: [{kind: A}, {kind: BList, items: [{kind: B}]}]\n", ["A", "B"]),
        ("kind: MachineList\nitems: []\n", []),
        ("kind: Shopping\nitems: [{kind: A}]\n", ["Shopping"]),
    ],
)
def test_objects_are_found_in_documents_and_in_lists(
    tmp_path: Path, text: str, kinds: list[str]
) -> None:
    assert [document["kind"] for document in read(tmp_path, text)] == kinds  # type: ignore[index]


def test_times_are_texts_as_in_json(tmp_path: Path) -> None:
    (read_back,) = read(tmp_path, "kind: A\nmade: 2026-01-31T23:59:59Z\nnumber: 3\n")
    assert read_back == {"kind": "A", "made": "2026-01-31T23:59:59Z", "number": 3}


def test_standard_input_is_read_as_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: A\n"))
    assert list(documents(STANDARD_INPUT)) == [{"kind": "A"}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- kind: A\n", "is a mapping"),
        ("kind: List\nitems: [3]\n", "is a mapping"),
        ("password: [hunter2\n", "line 2, column 1"),
        ("!!python/object:os.system {}\n", "line 1"),
    ],
)
def test_what_is_no_manifest_is_named_and_not_quoted(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint) as refusal:
        read(tmp_path, text)
    assert "objects.yaml" in str(refusal.value)
    assert "hunter2" not in str(refusal.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.yaml: No such file"):
        list(documents(tmp_path / "absent.yaml"))
