from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.labels import is_label_key, is_label_value
from mcm.api.meta import LabelSelector, LabelSelectorRequirement
from mcm.api.selectors import (
    FieldRequirement,
    FieldSelector,
    SelectorError,
    complaint_about,
    is_empty,
    matches,
    parse_field_selector,
    parse_label_selector,
    to_query,
)

_keys = st.sampled_from(["a", "b", "in", "x.io/name", "node.kubernetes.io/role"])
_values = st.sampled_from(["", "1", "2", "demo", "notin", "a.b-c_D"])
_labels = st.dictionaries(_keys, _values)
_requirements = st.one_of(
    st.builds(
        LabelSelectorRequirement,
        key=_keys,
        operator=st.sampled_from(["In", "NotIn"]),
        values=st.lists(_values, min_size=1, max_size=3).map(tuple),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=_keys,
        operator=st.sampled_from(["Exists", "DoesNotExist"]),
    ),
    st.builds(
        LabelSelectorRequirement,
        key=_keys,
        operator=st.sampled_from(["Gt", "Lt"]),
        values=st.integers(-3, 3).map(lambda n: (str(n),)),
    ),
)
_selectors = st.builds(
    LabelSelector,
    match_labels=_labels,
    match_expressions=st.lists(_requirements, max_size=4).map(tuple),
)


def _expression(operator: str, *values: str, key: str = "a") -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key=key, operator=operator, values=values)


def _by_expression(operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(_expression(operator, *values),))


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not matches(None, {"a": "1"})
    assert matches(LabelSelector(), {})
    assert matches(LabelSelector(), {"a": "1"})
    assert is_empty(None) and is_empty(LabelSelector())
    assert not is_empty(LabelSelector(match_labels={"a": "1"}))


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (LabelSelector(match_labels={"a": "1"}), {"a": "1", "b": "2"}, True),
        (LabelSelector(match_labels={"a": "1"}), {"a": "2"}, False),
        (LabelSelector(match_labels={"a": ""}), {}, False),
        (_by_expression("In", "1", "2"), {"a": "2"}, True),
        (_by_expression("In", "1", "2"), {"a": "3"}, False),
        (_by_expression("In", ""), {}, False),
        (_by_expression("NotIn", "1"), {"a": "2"}, True),
        (_by_expression("NotIn", "1"), {"a": "1"}, False),
        (_by_expression("NotIn", "1"), {}, True),
        (_by_expression("Exists"), {"a": ""}, True),
        (_by_expression("Exists"), {}, False),
        (_by_expression("DoesNotExist"), {}, True),
        (_by_expression("DoesNotExist"), {"a": "1"}, False),
        (_by_expression("Gt", "3"), {"a": "10"}, True),
        (_by_expression("Gt", "3"), {"a": "3"}, False),
        (_by_expression("Lt", "3"), {"a": "-1"}, True),
        (_by_expression("Lt", "3"), {"a": "x"}, False),
        (_by_expression("Lt", "3"), {}, False),
    ],
)
def test_labels_are_matched(
    selector: LabelSelector, labels: dict[str, str], expected: bool
) -> None:
    assert matches(selector, labels) is expected


@pytest.mark.parametrize(
    "broken",
    [
        _expression("in", "1"),
        _expression("Near", "1"),
        _expression("In"),
        _expression("NotIn"),
        _expression("Exists", "1"),
        _expression("DoesNotExist", "1"),
    ],
)
@pytest.mark.parametrize("labels", [{}, {"a": "1"}, {"a": "2"}])
def test_a_requirement_which_makes_no_sense_matches_nothing_and_is_named(
    broken: LabelSelectorRequirement, labels: dict[str, str]
) -> None:
    selector = LabelSelector(match_expressions=(broken,))
    assert not matches(selector, labels)
    assert complaint_about(broken)
    with pytest.raises(SelectorError):
        to_query(selector)


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("", LabelSelector()),
        ("  ", LabelSelector()),
        ("a=1", LabelSelector(match_labels={"a": "1"})),
        ("a==1,b = 2", LabelSelector(match_labels={"a": "1", "b": "2"})),
        ("a=", LabelSelector(match_labels={"a": ""})),
        ("a=,b=2", LabelSelector(match_labels={"a": "", "b": "2"})),
        ("a=1,a=1", LabelSelector(match_labels={"a": "1"})),
        ("a!=1", _by_expression("NotIn", "1")),
        ("a!=", _by_expression("NotIn", "")),
        ("a", _by_expression("Exists")),
        ("!a", _by_expression("DoesNotExist")),
        ("! a", _by_expression("DoesNotExist")),
        ("a in (1)", _by_expression("In", "1")),
        ("a in (1, 2)", _by_expression("In", "1", "2")),
        ("a in(1,2)", _by_expression("In", "1", "2")),
        ("a in ()", _by_expression("In", "")),
        ("a in (,1)", _by_expression("In", "", "1")),
        ("a notin (1,2)", _by_expression("NotIn", "1", "2")),
        ("a>5", _by_expression("Gt", "5")),
        ("a < 5", _by_expression("Lt", "5")),
        (
            "x.io/a=1,a in (1,2),!b",
            LabelSelector(
                match_labels={"x.io/a": "1"},
                match_expressions=(
                    _expression("In", "1", "2"),
                    _expression("DoesNotExist", key="b"),
                ),
            ),
        ),
    ],
)
def test_the_grammar_of_kubectl_is_read(text: str, selector: LabelSelector) -> None:
    assert parse_label_selector(text) == selector


def test_contradicting_equalities_match_nothing() -> None:
    selector = parse_label_selector("a=1,a=2")
    assert not any(matches(selector, {"a": value}) for value in ("1", "2", "3"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a=b,", "'' is not a label key"),
        (",a", "',' is not a label key"),
        ("=b", "'=' is not a label key"),
        ("a b", "unexpected 'b'"),
        ("a in b", "expected '('"),
        ("a in (b", "the end"),
        ("!a=b", "expected ','"),
        ("a>x", "not an integer"),
        ("a=b=c", "expected ','"),
        ("a=sp%ce", "not a label value"),
        ("-a=b", "not a label key"),
        ("UPPER.io/a=b", "not a label key"),
        ("a=" + "x" * 64, "not a label value"),
    ],
)
def test_what_is_no_selector_is_refused_with_a_reason(text: str, complaint: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)
    assert complaint in str(caught.value)


def test_a_query_is_sorted_so_that_equal_selectors_look_equal() -> None:
    selector = LabelSelector(
        match_labels={"b": "2", "a": "1"},
        match_expressions=(_expression("In", "z", "y", "z"), _expression("Exists", key="c")),
    )
    assert to_query(selector) == "a=1,b=2,a in (y,z),c"
    assert to_query(LabelSelector()) == ""


@given(_selectors, _labels)
def test_a_selector_and_its_query_agree_on_all_labels(
    selector: LabelSelector, labels: dict[str, str]
) -> None:
    assert matches(parse_label_selector(to_query(selector)), labels) is matches(selector, labels)


@given(_selectors, _labels)
def test_more_demands_never_match_more(selector: LabelSelector, labels: dict[str, str]) -> None:
    weaker = LabelSelector(
        match_labels=selector.match_labels, match_expressions=selector.match_expressions[1:]
    )
    assert matches(weaker, labels) or not matches(selector, labels)


@given(st.text(alphabet="ab1=!,()<> in", max_size=16))
def test_any_text_is_a_selector_or_a_selector_error(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    assert parse_label_selector(to_query(selector)) is not None


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("a", True),
        ("app.kubernetes.io/name", True),
        ("x" * 63, True),
        ("x" * 64, False),
        ("", False),
        ("/a", False),
        ("a/", False),
        ("a/b/c", False),
        ("_a", False),
        ("Ab/c", False),
        (f"{'a.' * 126}a/b", True),
        (f"{'a.' * 127}a/b", False),
    ],
)
def test_label_keys_are_told_from_other_texts(text: str, good: bool) -> None:
    assert is_label_key(text) is good


def test_label_values_may_be_empty() -> None:
    assert is_label_value("") and is_label_value("True") and not is_label_value("a b")


# Field selectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        ("", ()),
        ("metadata.name=x", (FieldRequirement("metadata.name", "x"),)),
        ("metadata.name==x", (FieldRequirement("metadata.name", "x"),)),
        (
            "spec.nodeName!=y,metadata.namespace=z",
            (
                FieldRequirement("spec.nodeName", "y", equal=False),
                FieldRequirement("metadata.namespace", "z"),
            ),
        ),
        ("spec.nodeName=", (FieldRequirement("spec.nodeName", ""),)),
        (r"message=a\,b\=c\\d", (FieldRequirement("message", r"a,b=c\d"),)),
        ("a=1,,b=2,", (FieldRequirement("a", "1"), FieldRequirement("b", "2"))),
    ],
)
def test_field_selectors_are_read(text: str, requirements: tuple[FieldRequirement, ...]) -> None:
    assert parse_field_selector(text) == FieldSelector(requirements)


@pytest.mark.parametrize("text", ["a", "=b", "a=b=c", "a>b", "!a", r"a=\x"])
def test_what_is_no_field_selector_is_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_field_selector(text)


def test_an_absent_field_counts_as_empty() -> None:
    unscheduled = parse_field_selector("spec.nodeName=")
    assert unscheduled.matches({}) and unscheduled.matches({"spec.nodeName": ""})
    assert not unscheduled.matches({"spec.nodeName": "n"})
    assert parse_field_selector("spec.nodeName!=n").matches({})
