"""What is said of one document, and where that stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.validation import Examined, FieldError


@final
@dataclass(frozen=True, slots=True)
class Place:
    """The ``number``-th object of ``file``, from 1 on (0: the file as a whole)."""

    file: str
    number: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.number}" if self.number else self.file


@final
@dataclass(frozen=True, slots=True)
class Document:
    """One object as it was written. ``obj`` is what of it could be read, None if it is of another
    kind, or nothing could."""

    place: Place
    body: JSONObject
    obj: Examined | None = None

    @property
    def kind(self) -> str:
        kind = self.body.get("kind")
        return kind if isinstance(kind, str) else ""

    @property
    def metadata(self) -> JSONObject:
        metadata = self.body.get("metadata")
        return metadata if isinstance(metadata, dict) else {}

    @property
    def name(self) -> str:
        return _text(self.metadata.get("name")) or _text(self.metadata.get("generateName"))

    def namespace(self, default: str) -> str:
        return _text(self.metadata.get("namespace")) or default

    def key(self, default_namespace: str) -> str:
        return ObjectMeta(name=self.name, namespace=self.namespace(default_namespace)).key

    def __str__(self) -> str:
        return f"{self.kind or 'object'}/{self.name or '?'}"


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """``document`` is None for what keeps a file from being read; ``said.field`` may be empty."""

    place: Place
    said: FieldError
    document: Document | None = None

    @property
    def is_error(self) -> bool:
        return not self.said.is_warning


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
