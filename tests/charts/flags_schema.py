"""What the chart's schema says of ``manager.config``: each flag by its name, and what it takes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import orjson

from mcm.configuration.flag import CONFIG, Flag
from mcm.configuration.table import all_flags
from tests.charts.helm_binary import CHART

SCHEMA: Final = CHART / "values.schema.json"

Schema = dict[str, Any]

_NUMBERS: Final = {"type": "string", "pattern": "^[0-9]+(,[0-9]+)*$"}
_BY_TYPE: Final[Mapping[object, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    int | None: {"type": "integer"},
    float: {"type": "number"},
    timedelta: {"anyOf": [{"type": "string", "pattern": "^[0-9]"}, {"const": 0}]},
    tuple[str, ...]: {"type": ["string", "array"], "items": {"type": "string"}},
    tuple[int, ...]: {"anyOf": [_NUMBERS, {"type": "array", "items": {"type": "integer"}}]},
}


def values_schema() -> str:
    """Return ``charts/mcm/values.schema.json``: all but the flags is written by hand."""
    schema = orjson.loads(SCHEMA.read_bytes())
    schema["properties"]["manager"]["properties"]["config"] = _config()
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _config() -> Schema:
    flags = sorted(all_flags(), key=lambda flag: flag.name)
    known = {flag.name: _of(flag) for flag in flags if flag.name != CONFIG}
    return {"type": "object", "additionalProperties": False, "properties": known}


def _of(flag: Flag) -> Schema:
    kind = get_type_hints(flag.owner)[flag.field]
    if get_origin(kind) is Literal:
        return {"enum": list(get_args(kind))}
    return _BY_TYPE[kind]
