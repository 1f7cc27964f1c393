"""Label selectors (objects and kubectl's ``-l`` text) and field selectors.

A selector that cannot be understood (an unknown operator, ``In`` without values) matches nothing:
nothing is adopted, moved or deleted because of a typing error. :mod:`mcm.api.validation` names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import final

from mcm.api.labels import is_label_key, is_label_value
from mcm.api.meta import LabelSelector, LabelSelectorRequirement

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
# Not allowed in an object's selector, but part of the query grammar.
GREATER = "Gt"
LESS = "Lt"


class SelectorError(ValueError):
    """The text is no selector; says where and why."""


# Matching -----------------------------------------------------------------------------------------


def matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Tell whether labels satisfy a selector: None matches nothing, an empty one everything."""
    if selector is None:
        return False
    for key, value in selector.match_labels.items():
        if labels.get(key) != value:
            return False
    return all(_satisfied(r, labels.get(r.key)) for r in selector.match_expressions)


def matcher(selector: LabelSelector | None) -> Callable[[Mapping[str, str]], bool]:
    """Return :func:`matches` of one selector, for the labels of many objects."""
    if selector is None or selector.match_expressions:
        return lambda labels: matches(selector, labels)
    wanted = selector.match_labels.items()
    return lambda labels: wanted <= labels.items()


def is_empty(selector: LabelSelector | None) -> bool:
    """Tell whether a selector says nothing at all (None included)."""
    return selector is None or not (selector.match_labels or selector.match_expressions)


def complaint_about(requirement: LabelSelectorRequirement) -> str:
    """Say what makes a requirement unusable in an object's selector; empty if nothing."""
    match requirement.operator:
        case "In" | "NotIn" if not requirement.values:
            return f"values must be given for operator {requirement.operator}"
        case "Exists" | "DoesNotExist" if requirement.values:
            return f"values must not be given for operator {requirement.operator}"
        case "In" | "NotIn" | "Exists" | "DoesNotExist":
            return ""
        case unknown:
            return f"operator {unknown!r} must be one of [DoesNotExist Exists In NotIn]"


def complaint_in(selector: LabelSelector | None) -> str:
    """Say what an API server minds in a selector, so that it takes it to select nothing; empty if
    nothing. None and an empty selector are in order."""
    if selector is None:
        return ""
    for key, value in selector.match_labels.items():
        if not is_label_key(key):
            return f"{key!r} is not a label key"
        if not is_label_value(value):
            return f"{key}: {value!r} is not a label value"
    for requirement in selector.match_expressions:
        if not is_label_key(requirement.key):
            return f"{requirement.key!r} is not a label key"
        if complaint := complaint_about(requirement):
            return f"{requirement.key}: {complaint}"
        if (
            bad := next((v for v in requirement.values if not is_label_value(v)), None)
        ) is not None:
            return f"{requirement.key}: {bad!r} is not a label value"
    return ""


def _satisfied(requirement: LabelSelectorRequirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return bool(requirement.values) and value not in requirement.values
        case "Exists":
            return value is not None and not requirement.values
        case "DoesNotExist":
            return value is None and not requirement.values
        case "Gt" | "Lt":
            return _compared(requirement, value)
        case _:
            return False


def _compared(requirement: LabelSelectorRequirement, value: str | None) -> bool:
    if value is None or len(requirement.values) != 1:
        return False
    bound, actual = _integer(requirement.values[0]), _integer(value)
    if bound is None or actual is None:
        return False
    return actual > bound if requirement.operator == GREATER else actual < bound


def _integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,19}", text) else None


# Writing queries ----------------------------------------------------------------------------------


def to_query(selector: LabelSelector) -> str:
    """Write a selector as the text of a ``labelSelector`` parameter; keys and values sorted.

    Raises SelectorError for a requirement which cannot be written (see :func:`complaint_about`).
    """
    terms = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    terms += sorted(_term(requirement) for requirement in selector.match_expressions)
    return ",".join(terms)


def _term(requirement: LabelSelectorRequirement) -> str:
    key, values = requirement.key, requirement.values
    if requirement.operator in (GREATER, LESS) and len(values) == 1:
        return f"{key}{'>' if requirement.operator == GREATER else '<'}{values[0]}"
    if complaint := complaint_about(requirement):
        raise SelectorError(f"{key}: {complaint}")
    match requirement.operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case operator:
            return f"{key} {operator.lower()} ({','.join(sorted(set(values)))})"


# Reading kubectl's grammar ------------------------------------------------------------------------

_TOKEN = re.compile(r"\s*(?:(?P<symbol>==|!=|[=!<>(),])|(?P<word>[^\s=!<>(),]+))")
_END = ""


def parse_label_selector(text: str) -> LabelSelector:
    """Parse ``a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1``; an empty text selects everything.

    Equalities become ``match_labels``, all else ``match_expressions``. Raises SelectorError, also
    for keys and values which no label may have.
    """
    return _LabelParser(text).selector()


@final
class _LabelParser:
    """Recursive descent over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._next = 0

    def selector(self) -> LabelSelector:
        labels: dict[str, str] = {}
        expressions: list[LabelSelectorRequirement] = []
        while self._peek() != _END or self._next:
            requirement, equality = self._requirement()
            if (
                equality
                and labels.get(requirement.key, requirement.values[0]) == requirement.values[0]
            ):
                labels[requirement.key] = requirement.values[0]
            else:
                expressions.append(requirement)
            if self._peek() == _END:
                break
            self._expect(",")
        return LabelSelector(match_labels=labels, match_expressions=tuple(expressions))

    def _requirement(self) -> tuple[LabelSelectorRequirement, bool]:
        if self._peek() == "!":
            self._take()
            return _demand(self._key(), DOES_NOT_EXIST), False
        key, symbol = self._key(), self._peek()
        if symbol in (_END, ","):
            return _demand(key, EXISTS), False
        self._take()
        match symbol:
            case "=" | "==":
                return _demand(key, IN, self._value()), True
            case "!=":
                return _demand(key, NOT_IN, self._value()), False
            case ">" | "<":
                return _demand(key, GREATER if symbol == ">" else LESS, self._number()), False
            case "in" | "notin":
                return _demand(key, IN if symbol == "in" else NOT_IN, *self._values()), False
            case _:
                raise self._error(f"unexpected {symbol!r} after key {key!r}")

    def _key(self) -> str:
        key = self._take()
        if not is_label_key(key):
            raise self._error(f"{key!r} is not a label key")
        return key

    def _value(self) -> str:
        """A value; nothing where a value could stand is the empty one."""
        value = _END if self._peek() in (_END, ",", ")") else self._take()
        if not is_label_value(value):
            raise self._error(f"{value!r} is not a label value")
        return value

    def _number(self) -> str:
        value = self._take()
        if _integer(value) is None:
            raise self._error(f"{value!r} is not an integer")
        return value

    def _values(self) -> Iterator[str]:
        self._expect("(")
        yield self._value()
        while self._peek() == ",":
            self._take()
            yield self._value()
        self._expect(")")

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else _END

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _expect(self, wanted: str) -> None:
        found = self._take()
        if found != wanted:
            raise self._error(f"expected {wanted!r}, found {found or 'the end'!r}")

    def _error(self, detail: str) -> SelectorError:
        return SelectorError(f"invalid label selector {self._text!r}: {detail}")


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        yield match["symbol"] or match["word"]


def _demand(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


# Field selectors ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """``field=value``, or ``field!=value`` if not ``equal``."""

    field: str
    value: str
    equal: bool = True


@final
@dataclass(frozen=True, slots=True)
class FieldSelector:
    requirements: tuple[FieldRequirement, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        """``fields`` maps paths to values; a field which is absent counts as empty."""
        return all((fields.get(r.field, "") == r.value) == r.equal for r in self.requirements)


_FIELD_TERM = re.compile(
    r"(?P<field>(?:[^\\=!,]|\\.)+)(?P<operator>==|=|!=)(?P<value>(?:[^\\=,]|\\[\\,=])*)"
)


def parse_field_selector(text: str) -> FieldSelector:
    """Parse ``metadata.name=x,spec.nodeName!=y``; in values ``\\``, ``,`` and ``=`` are escaped.

    Raises SelectorError. Which fields a resource can be selected by is the server's to say.
    """
    requirements: list[FieldRequirement] = []
    position = 0
    while position < len(text):
        if text[position] == ",":  # empty terms say nothing
            position += 1
            continue
        match = _FIELD_TERM.match(text, position)
        if match is None or text[match.end() : match.end() + 1] not in ("", ","):
            raise SelectorError(f"invalid field selector {text!r}: at {text[position:]!r}")
        value = re.sub(r"\\(.)", r"\1", match["value"])
        requirements.append(
            FieldRequirement(match["field"].strip(), value, match["operator"] != "!=")
        )
        position = match.end()
    return FieldSelector(tuple(requirements))
