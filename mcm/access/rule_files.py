"""Rules as the YAML that the chart's roles include, comments and all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcm.access.rules import Purpose, Rule

_WIDTH = 100


def rules_as_yaml(purpose: Purpose) -> str:
    """Return a YAML list of PolicyRules, headed by what it is for; ends with a line break."""
    lines = [f"# {purpose.reason}"]
    for rule in purpose.rules:
        lines.extend(_lines(rule))
    return "\n".join(lines) + "\n"


def _lines(rule: Rule) -> Iterator[str]:
    if rule.reason:
        yield f"# {rule.reason}"
    yield from _field("- apiGroups", [group or '""' for group in rule.groups])
    yield from _field("  resources", rule.resources)
    if rule.names:
        yield from _field("  resourceNames", rule.names)
    yield from _field("  verbs", rule.verbs)


def _field(name: str, values: Sequence[str]) -> Iterator[str]:
    """Yield the field on one line, or with one value a line where that would be too long."""
    line = f"{name}: [{', '.join(values)}]"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{name}:"
    for value in values:
        yield f"  - {value}"
