"""The findings as people and as programs read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mcm.preflight.finding import Finding, Outcome

_TITLES: Final = {
    Outcome.PROBLEM: "PROBLEMS",
    Outcome.WARNING: "WARNINGS",
    Outcome.OK: "OK",
}


def as_text(findings: Sequence[Finding]) -> str:
    """Return a group for each outcome, the worst first, each line with what to do about it."""
    lines: list[str] = []
    for outcome in Outcome:
        group = [finding for finding in findings if finding.outcome is outcome]
        if group:
            lines += ["", f"{_TITLES[outcome]} ({len(group)})", *_rows(group)]
    return "\n".join([*lines[1:], "", summary(findings)]) + "\n"


def _rows(group: Sequence[Finding]) -> Iterator[str]:
    width = max(len(finding.check) for finding in group)
    for finding in group:
        yield f"  {finding.check.ljust(width)}  {finding.subject}: {_line(finding.text)}"
        if finding.remedy:
            yield f"  {' ' * width}    to do: {finding.remedy}"


def summary(findings: Sequence[Finding]) -> str:
    counts = {o: sum(finding.outcome is o for finding in findings) for o in Outcome}
    return (
        f"{counts[Outcome.PROBLEM]} problems, {counts[Outcome.WARNING]} warnings, "
        f"{counts[Outcome.OK]} ok; nothing was written"
    )


def as_json(findings: Sequence[Finding]) -> dict[str, object]:
    """Return all of it, each finding with every field."""
    return {
        "problems": sum(finding.outcome is Outcome.PROBLEM for finding in findings),
        "warnings": sum(finding.outcome is Outcome.WARNING for finding in findings),
        "findings": [
            {
                "outcome": finding.outcome.value,
                "check": finding.check,
                "subject": finding.subject,
                "text": finding.text,
                "remedy": finding.remedy,
            }
            for finding in findings
        ],
    }


def _line(text: str) -> str:
    return " ".join(text.split())
