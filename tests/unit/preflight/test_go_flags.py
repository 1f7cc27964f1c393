"""What becomes of the flags that the Go original was given."""

from __future__ import annotations

import pytest

from mcm.preflight.go_flags import CommandLine, check_flags, command_lines

SETS, MACHINES = "machine-controller-manager", "machine-controller"


def said(program: str, *flags: tuple[str, str]) -> list[tuple[str, str]]:
    return [(f.outcome.value, f.text) for f in check_flags([CommandLine(program, flags)])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "./machine-controller --a=1 --b 2 --c",
            (MACHINES, [("a", "1"), ("b", "2"), ("c", "true")]),
        ),
        ("--a=1", (SETS, [("a", "1")])),
        ("machine-controller-manager \\\n  --kube_api_qps=5", (SETS, [("kube-api-qps", "5")])),
        ("machine-controller -v=4", (MACHINES, [("v", "4")])),
        ("mcm --a --b=2", ("mcm", [("a", "true"), ("b", "2")])),
    ],
)
def test_a_command_line_is_read_as_go_reads_it(
    text: str, expected: tuple[str, list[tuple[str, str]]]
) -> None:
    (line,) = command_lines(text)
    assert (line.program, list(line.flags)) == expected


@pytest.mark.parametrize("text", ["", "hello", "kind: Deployment\nspec: {}\n"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|no container"):
        command_lines(text)


def test_a_flag_of_the_same_meaning_carries_over() -> None:
    (flag, command) = said(SETS, ("safety-up", "2"))
    assert flag == ("ok", "carries over: 2")
    assert command == ("ok", "mcm run --safety-up=2")


def test_workers_of_machines_bear_another_name() -> None:
    assert said(SETS, ("concurrent-syncs", "5"))[0] == ("ok", "carries over: 5")
    assert said(MACHINES, ("concurrent-syncs", "5"))[:2] == [
        ("warning", "is --machine-concurrent-syncs here"),
        ("ok", "mcm run --machine-concurrent-syncs=5"),
    ]


def test_what_has_no_effect_is_left_out_and_what_differs_is_told() -> None:
    assert said(SETS, ("cloud-provider", "x")) == [
        ("ok", "is accepted without effect. Providers are chosen by --provider."),
        ("ok", "mcm run"),
    ]
    assert said(SETS, ("kube-api-qps", "20"))[0][0] == "warning"


def test_what_is_unknown_is_a_problem_and_left_out() -> None:
    assert said(SETS, ("enable-wonders", "2")) == [
        ("problem", "is unknown here"),
        ("ok", "mcm run"),
    ]


def test_two_values_of_one_flag_are_told_of() -> None:
    lines = [CommandLine(SETS, [("v", "2")]), CommandLine(MACHINES, [("v", "4")])]
    assert [(f.outcome.value, f.text) for f in check_flags(lines)] == [
        ("ok", "carries over: 2"),
        ("warning", "is 4, but the other process has 2; there is one here"),
        ("ok", "mcm run --v=2"),
    ]
