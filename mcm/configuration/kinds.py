"""How a flag's value is written and read, by its type: as text, and as a value of YAML."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final, Literal, final, get_args, get_origin

from mcm.api.durations import format_duration, parse_duration

_TOO_LARGE: Final = 10**20  # as for numbers in text
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_EXPONENTIAL: Final = re.compile(r"-?[0-9](\.[0-9]+)?e\+[0-9]{1,2}", re.ASCII)
_BOOLEANS: Final[Mapping[str, bool]] = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """``of_text`` and ``of_yaml`` raise ValueError, which says what was expected instead."""

    word: str
    """What the help calls a value; empty for a boolean, which needs none."""
    of_text: Callable[[str], object]
    of_yaml: Callable[[object], object]
    as_text: Callable[[Any], str]

    @property
    def needs_no_value(self) -> bool:
        return not self.word


def boolean(text: str) -> bool:
    """Read a boolean in any of the spellings of Go's ``ParseBool``."""
    if (value := _BOOLEANS.get(text)) is None:
        raise ValueError(f"{text!r} is neither true nor false")
    return value


def is_boolean(text: str) -> bool:
    """Whether :func:`boolean` reads this."""
    return text in _BOOLEANS


def duration(text: str) -> timedelta:
    """Read a duration as Go writes them."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{error} (expected a duration such as 90s, 10m or 1h30m)") from None


def words(text: str) -> tuple[str, ...]:
    """Read what commas separate; blanks around them do not count."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _integer(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)


def _integers(text: str) -> tuple[int, ...]:
    try:
        return tuple(_integer(item) for item in words(text))
    except ValueError as error:
        raise ValueError(f"{error} (expected some, as 0,1000)") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None


def _text_of_yaml(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{_shown(value)} is no string: put it in quotes")
    return value


def _boolean_of_yaml(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is neither true nor false (without quotes)")
    return value


def _integer_of_yaml(value: object) -> int:
    if (large := _exponential(value)) is not None:
        value = large
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{_shown(value)} is no whole number (without quotes)")
    if abs(value) >= _TOO_LARGE:
        raise ValueError("this number is too large")
    return value


def _number_of_yaml(value: object) -> float:
    if (large := _exponential(value)) is not None:
        return large
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{_shown(value)} is no number (without quotes)")
    return float(value)


def _integer_if_any(text: str) -> int | None:
    return _integer(text) if text else None


def _exponential(value: object) -> float | None:
    """A large number as helm writes it, which is a string to YAML 1.1; None of anything else."""
    is_one = isinstance(value, str) and _EXPONENTIAL.fullmatch(value)
    return float(str(value)) if is_one else None


def _duration_of_yaml(value: object) -> timedelta:
    if value == 0 and not isinstance(value, bool):
        return timedelta()
    if not isinstance(value, str):
        raise ValueError(
            f"{_shown(value)} is no duration (expected a string such as 90s, 10m or 1h30m)"
        )
    return duration(value)


def _words_of_yaml(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return words(value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{_shown(value)} is no list of strings")
    return tuple(value)


def _integers_of_yaml(value: object) -> tuple[int, ...]:
    if isinstance(value, str):
        return _integers(value)
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is no list of whole numbers")
    return tuple(_integer_of_yaml(item) for item in value)


def _shown(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _number_as_text(value: float) -> str:
    return f"{value:g}"


def _choice(choices: tuple[str, ...]) -> Kind:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return Kind("|".join(choices), read, lambda value: read(_text_of_yaml(value)), str)


_BY_TYPE: Final[Mapping[object, Kind]] = {
    str: Kind("text", str, _text_of_yaml, str),
    bool: Kind("", boolean, _boolean_of_yaml, lambda value: str(value).lower()),
    int: Kind("number", _integer, _integer_of_yaml, str),
    int | None: Kind(
        "number",
        _integer_if_any,
        _integer_of_yaml,
        lambda value: "" if value is None else str(value),
    ),
    float: Kind("number", _number, _number_of_yaml, _number_as_text),
    timedelta: Kind("duration", duration, _duration_of_yaml, format_duration),
    tuple[str, ...]: Kind("list", words, _words_of_yaml, ",".join),
    tuple[int, ...]: Kind(
        "numbers", _integers, _integers_of_yaml, lambda value: ",".join(map(str, value))
    ),
}


@cache
def kind_of(annotation: object) -> Kind:
    """Return the kind of the values of a field with this type."""
    if get_origin(annotation) is Literal:
        return _choice(get_args(annotation))
    return _BY_TYPE[annotation]
