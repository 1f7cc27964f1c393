"""Checks that files made from the code are what the code makes, and that pins hold no addresses.

Run by ``make check``; exits 1 and names what to run.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcm.api.crds import to_yaml

ROOT = Path(__file__).resolve().parent.parent
CRDS = ROOT / "charts/mcm/crds/machine.sapcloud.io.yaml"


def problems() -> list[str]:
    found = []
    if not CRDS.is_file() or CRDS.read_text() != to_yaml():
        found.append(f"{CRDS.relative_to(ROOT)} is not what the types say: run `make crds`")
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if "://" in line or " @ " in line:
            found.append(f"constraints.txt holds an address: {line}")
        elif line and not line.startswith("#") and "==" not in line:
            found.append(f"constraints.txt: {line!r} is no exact pin")
    return found


def main() -> int:
    found = problems()
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
