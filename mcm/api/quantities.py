"""Kubernetes resource quantities (``500m``, ``16Gi``, ``1e3``) as exact decimals.

Equal amounts compare equal whatever their spelling: ``1`` and ``1000m`` give the same decimal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
)
_DECIMAL_EXPONENT = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_POWER = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
# Far beyond any amount of anything; keeps a hostile text from costing gigabytes.
_LONGEST = 128
_LARGEST_EXPONENT = 64


def parse_quantity(text: str | int) -> Decimal:
    """Parse a quantity; raise ValueError if it is none.

    Integers are taken as they are, since the field is int-or-string on the wire.
    """
    if isinstance(text, int):
        return Decimal(text)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(
            f"invalid quantity {text[:_LONGEST]!r}: want a number with a suffix like m, k or Gi"
        )
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    if suffix in _BINARY_POWER:
        return _exactly(number, 1024 ** _BINARY_POWER[suffix])
    exponent = _DECIMAL_EXPONENT.get(suffix)
    if exponent is None:
        exponent = int(suffix[1:]) if suffix else 0
    if abs(exponent) > _LARGEST_EXPONENT:
        raise ValueError(f"invalid quantity {text!r}: exponent out of range")
    return _shift(number, exponent)


def same_quantity(left: str | int, right: str | int) -> bool:
    """Tell whether two quantities are the same amount; texts that are none must be identical."""
    if left == right:
        return True
    try:
        return parse_quantity(left) == parse_quantity(right)
    except ValueError:
        return False


def same_resources(left: Mapping[str, str | int], right: Mapping[str, str | int]) -> bool:
    """Tell whether two resource lists name the same resources in the same amounts."""
    return left.keys() == right.keys() and all(same_quantity(left[k], right[k]) for k in left)


def _shift(number: Decimal, exponent: int) -> Decimal:
    """Multiply by a power of ten by moving the point: no rounding, whatever the context."""
    sign, digits, place = number.as_tuple()
    return Decimal((sign, digits, int(place) + exponent))


def _exactly(number: Decimal, factor: int) -> Decimal:
    """Multiply without the 28 digits of the default context."""
    sign, digits, place = number.as_tuple()
    product = int("".join(map(str, digits))) * factor
    return _shift(Decimal(-product if sign else product), int(place))
