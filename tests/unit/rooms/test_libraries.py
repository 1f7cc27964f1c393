"""Each library that the package asks for is one that its code imports."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
_MODULES = {"pyyaml": "yaml"}
"""Modules that are named otherwise than their package."""


def test_each_library_is_used() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w-]", asked)[0].lower() for asked in project["dependencies"]}
    assert {"aiohttp", "kubernetes-asyncio", "orjson", "prometheus-async", "uvloop"} <= names
    wanted = {_MODULES.get(name, name.replace("-", "_")) for name in names}
    assert wanted <= set(_imported())


def _imported() -> Iterator[str]:
    for path in (ROOT / "mcm").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]
