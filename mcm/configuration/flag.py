"""What a flag is: a name, the field of a group of options that it sets, and what to say of it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final, final, get_type_hints

from mcm.configuration.kinds import Kind, kind_of

CONFIG: Final = "config"
"""The flag that names the file in which others are set."""


@final
@dataclass(frozen=True)
class Flag:
    """Sets the ``field`` of a dataclass, ``owner``; type and default are those of the field."""

    name: str
    owner: type
    field: str
    help: str

    @cached_property
    def kind(self) -> Kind:
        return kind_of(_types_of(self.owner)[self.field])

    @cached_property
    def default(self) -> object:
        for field in dataclasses.fields(self.owner):
            if field.name == self.field:
                return field.default
        raise AssertionError(f"{self.owner.__name__} has no field {self.field}")


@final
@dataclass(frozen=True, slots=True)
class Group:
    """Flags that an operator looks for in one place."""

    title: str
    flags: tuple[Flag, ...]


@cache
def _types_of(owner: type) -> dict[str, Any]:
    return get_type_hints(owner)
