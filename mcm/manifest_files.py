"""Reads manifest files as ``kubectl`` takes them: YAML or JSON, many in one, lists of objects."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, cast

import yaml

from mcm.api.meta import JSONObject
from mcm.client.errors import ConfigurationError

STANDARD_INPUT: Final = Path("-")


def documents(path: Path) -> Iterator[JSONObject]:
    """Yield the objects in ``path`` (``-``: standard input), those of lists one by one.

    Raises ConfigurationError, which names the file and the place, and quotes nothing: the file may
    hold a secret.
    """
    for document in _loaded(path):
        if document is None:
            continue
        yield from _objects(path, document)


def _loaded(path: Path) -> Iterable[object]:
    try:
        text = sys.stdin.read() if path == STANDARD_INPUT else path.read_text()
        return list(yaml.load_all(text, Loader=_Loader))
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is no text") from None
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{path}: {_complaint(error)}") from None


def _objects(path: Path, document: object) -> Iterator[JSONObject]:
    if not isinstance(document, dict):
        raise ConfigurationError(f"{path}: a manifest is a mapping with apiVersion and kind")
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _objects(path, item)
    else:
        yield cast("JSONObject", document)


def _complaint(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return f"{where}{getattr(error, 'problem', None) or 'no YAML'}"


class _Loader(yaml.SafeLoader):
    """Timestamps stay texts, as they are in JSON."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
