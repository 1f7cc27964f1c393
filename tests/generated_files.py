"""Files that are made from others: CRDs and rules of the chart, tables of flags and metrics.

``make check`` compares them with what the code makes, ``make generate`` writes them. Also checks
that the constraints are exact pins without addresses.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from mcm.access import PURPOSES
from mcm.access.rule_files import rules_as_yaml
from mcm.api.crds import to_yaml
from mcm.configuration.help import as_markdown
from mcm.configuration.table import GROUPS
from mcm.providers.simulated import virtual_machine
from tests.charts import flags_schema
from tests.charts.values_page import values_page
from tests.metrics import table
from tests.prometheus import dashboard

ROOT = Path(__file__).resolve().parent.parent

_FLAGS_PAGE = ROOT / "docs/flags.md"
_FLAGS_BEGIN, _FLAGS_END = "<!-- flags: made by `make generate` -->\n", "<!-- end of flags -->\n"


def flags_page() -> str:
    """Return ``docs/flags.md``: what stands around the tables is written by hand."""
    head, _, rest = _FLAGS_PAGE.read_text().partition(_FLAGS_BEGIN)
    _, _, tail = rest.partition(_FLAGS_END)
    tables = "\n".join(as_markdown(group) for group in GROUPS)
    return f"{head}{_FLAGS_BEGIN}\n{tables}\n{_FLAGS_END}{tail}"


def _simulation() -> str:
    """Return the kind of simulated VMs, which only those have who simulate."""
    return yaml.safe_dump(virtual_machine.crd_manifest(), sort_keys=False)


def generated() -> dict[Path, str]:
    return {
        ROOT / "charts/mcm/crds/machine.sapcloud.io.yaml": to_yaml(),
        ROOT / "docs/chart-values.md": values_page(),
        flags_schema.SCHEMA: flags_schema.values_schema(),
        _FLAGS_PAGE: flags_page(),
        ROOT / "charts/mcm/files/crds/simulation.machine.sapcloud.io.yaml": _simulation(),
        ROOT / "docs/metrics.md": table.page(),
        ROOT / "charts/mcm/files/dashboards/mcm.json": dashboard.as_json(),
        **{
            ROOT / f"charts/mcm/files/rbac/{purpose.name}.yaml": rules_as_yaml(purpose)
            for purpose in PURPOSES
        },
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
