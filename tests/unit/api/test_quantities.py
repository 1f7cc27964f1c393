from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.quantities import parse_quantity, same_quantity, same_resources

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
    "e3": Fraction(1000),
    "E-3": Fraction(1, 1000),
    "e+0": Fraction(1),
}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"),
        ("4", "4"),
        (4, "4"),
        ("500m", "0.5"),
        ("16Gi", "17179869184"),
        ("1.5Gi", "1610612736"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+1k", "1000"),
        ("-1Ki", "-1024"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E", "1000000000000000000"),
        ("123456789012345678901234567890Ki", str(123456789012345678901234567890 * 1024)),
    ],
)
def test_a_quantity_is_an_exact_decimal(text: str | int, amount: str) -> None:
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text",
    ["", "m", "1 Gi", "1gi", "1K", "0x1", "1e", "1e1.5", "1,5", "NaN", "Infinity", "--1", "1e999"],
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid quantity"):
        parse_quantity(text)


def test_a_very_long_text_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="invalid quantity"):
        parse_quantity("9" * 100_000)


@given(
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**20),
    st.integers(0, 9999),
    st.sampled_from(sorted(_SUFFIXES)),
)
def test_number_and_suffix_multiply_without_rounding(
    sign: str, whole: int, part: int, suffix: str
) -> None:
    exact = (whole + Fraction(part, 10_000)) * _SUFFIXES[suffix] * (-1 if sign == "-" else 1)
    assert Fraction(parse_quantity(f"{sign}{whole}.{part:04}{suffix}")) == exact


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1", "1000m", True),
        (1, "1", True),
        ("1Gi", "1024Mi", True),
        ("1G", "1Gi", False),
        ("1", "2", False),
        ("what", "what", True),
        ("what", "1", False),
    ],
)
def test_amounts_are_compared_not_spellings(left: str | int, right: str | int, same: bool) -> None:
    assert same_quantity(left, right) is same
    assert same_quantity(right, left) is same


def test_resource_lists_are_the_same_if_all_their_amounts_are() -> None:
    assert same_resources({"cpu": "1", "memory": "1Gi"}, {"memory": "1024Mi", "cpu": "1000m"})
    assert not same_resources({"cpu": "1"}, {"cpu": "1", "gpu": "0"})
    assert not same_resources({"cpu": "1"}, {"cpu": "2"})
