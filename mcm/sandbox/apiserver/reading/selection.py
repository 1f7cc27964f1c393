"""Which objects a list, watch or deletion means: by namespace, labels and fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from mcm.api.meta import LabelSelector
from mcm.api.selectors import SelectorError, matches, parse_field_selector, parse_label_selector
from mcm.sandbox.apiserver.errors import bad_request
from mcm.sandbox.apiserver.registry import ResourceInfo
from mcm.sandbox.apiserver.store import Collection, Stored

_METADATA_FIELDS = {"metadata.name": "metadata.name", "metadata.namespace": "metadata.namespace"}


@final
@dataclass(frozen=True, slots=True)
class FieldTest:
    """One requirement on the value at a path; an absent value counts as empty text."""

    path: tuple[str, ...]
    value: str
    equal: bool

    def passes(self, stored: Stored) -> bool:
        found: object = stored.body
        for step in self.path:
            found = found.get(step) if isinstance(found, dict) else None
        return (_text(found) == self.value) == self.equal


@final
@dataclass(frozen=True, slots=True)
class Selection:
    """``namespace`` empty: all namespaces; ``labels`` None: any."""

    namespace: str = ""
    labels: LabelSelector | None = None
    fields: tuple[FieldTest, ...] = ()

    @property
    def by_content(self) -> bool:
        """Whether more than the namespace decides; the rest of a list is then not countable."""
        return self.labels is not None or bool(self.fields)

    def matches(self, stored: Stored) -> bool:
        if self.namespace and stored.namespace != self.namespace:
            return False
        return self.matches_content(stored)

    def matches_content(self, stored: Stored) -> bool:
        """As :meth:`matches`, for an object known to be in the namespace."""
        if self.labels is not None and not matches(self.labels, stored.labels):
            return False
        return all(test.passes(stored) for test in self.fields)

    def current(self, collection: Collection) -> list[Stored]:
        """Return the selected current objects, by key."""
        name = self._single_name()
        if name is not None:
            found = collection.get(f"{self.namespace}/{name}" if self.namespace else name)
            return [found] if found is not None and self.matches(found) else []
        objects = collection.ordered(self.namespace or None)
        if not self.by_content:
            return objects
        return [stored for stored in objects if self.matches_content(stored)]

    def _single_name(self) -> str | None:
        """The name, if a name alone finds the object without a scan."""
        for test in self.fields:
            if test.equal and test.path == ("metadata", "name") and self.namespace:
                return test.value
        return None


def parse_selection(info: ResourceInfo, namespace: str, query: Mapping[str, str]) -> Selection:
    """Build the selection of a request's parameters. Raises StatusError (400), also for a field
    by which the resource cannot be selected."""
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    if not labels and not fields:
        return Selection(namespace)
    try:
        return Selection(
            namespace,
            parse_label_selector(labels) if labels else None,
            _field_tests(info, fields) if fields else (),
        )
    except SelectorError as error:
        raise bad_request(f"unable to parse requirement: {error}") from None


def _field_tests(info: ResourceInfo, text: str) -> tuple[FieldTest, ...]:
    tests: list[FieldTest] = []
    for requirement in parse_field_selector(text).requirements:
        path = _METADATA_FIELDS.get(requirement.field) or info.field_selectors.get(
            requirement.field
        )
        if path is None:
            raise bad_request(f"field label not supported: {requirement.field}")
        tests.append(FieldTest(tuple(path.split(".")), requirement.value, requirement.equal))
    return tuple(tests)


def _text(value: object) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)
