"""Files that are made from the code: the CRDs of the chart, the table of flags.

``make check`` compares them with what the code makes, ``make generate`` writes them. Also checks
that the constraints are exact pins without addresses.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mcm.api.crds import to_yaml
from mcm.cli import run
from mcm.flags import WITHOUT_EFFECT

ROOT = Path(__file__).resolve().parent.parent

_FLAGS_HEAD = """\
# Flags of `mcm run`

Made by `make generate` from the code. Names, meanings and defaults are those of the Go original's
two processes, which this one process replaces. Flags may be written with underscores. Durations
are Go's (`90s`, `1h30m`); a boolean flag alone means true, `--flag=false` switches it off.

| flag | default | meaning |
|---|---|---|
"""

_FLAGS_TAIL = """
## Where it differs

- One process does the work of both: `--concurrent-syncs` (default 10) is for the set controllers,
  `--machine-concurrent-syncs` (default 50) for the machine controllers; it holds both leases.
- So many machines are created at a time, and as many deleted. A fifth more is held back for classes
  that would otherwise wait until another one's slow creations end.
- `--kube-api-qps` is 0, no limit: the API server's priority and fairness rules apply, and
  `Retry-After` is obeyed. `--max-in-flight` bounds the concurrency instead.
- Accepted without effect, as nothing depends on them: {ignored}.
"""


def flags_page() -> str:
    """Return ``docs/flags.md``."""
    context = click.Context(run)
    rows = []
    for option in run.params:
        if not isinstance(option, click.Option) or option.hidden:
            continue
        shown = option.show_default if isinstance(option.show_default, str) else option.default
        default = f"`{shown}`" if shown not in (None, "", ()) else ""
        help_text = " ".join((option.help or "").split())
        rows.append(f"| `{option.opts[0]}` | {default} | {help_text} |")
    context.close()
    ignored = ", ".join(f"`--{name}`" for name in WITHOUT_EFFECT)
    return _FLAGS_HEAD + "\n".join(rows) + "\n" + _FLAGS_TAIL.format(ignored=ignored)


def generated() -> dict[Path, str]:
    return {
        ROOT / "charts/mcm/crds/machine.sapcloud.io.yaml": to_yaml(),
        ROOT / "docs/flags.md": flags_page(),
    }


def problems() -> list[str]:
    found = [
        f"{path.relative_to(ROOT)} is not what the code makes: run `make generate`"
        for path, content in generated().items()
        if not path.is_file() or path.read_text() != content
    ]
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if "://" in line or " @ " in line:
            found.append(f"constraints.txt holds an address: {line}")
        elif line and not line.startswith("#") and "==" not in line:
            found.append(f"constraints.txt: {line!r} is no exact pin")
    return found


def main() -> int:
    if "--write" in sys.argv:
        for path, content in generated().items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        return 0
    found = problems()
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
