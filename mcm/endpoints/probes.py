"""``/healthz`` and ``/readyz``: what is wrong, by name, as a status and in words.

As Kubernetes' own components answer: ``?verbose`` lists every check, ``?exclude=NAME`` leaves one
out, and each check has a path of its own below the probe's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import final

from aiohttp import web

Problems = Callable[[], Mapping[str, str]]
"""Returns what is wrong, by the name of the check that found it; empty when all is well."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One probe's page. ``checks`` names all that is looked at; a problem may have another name."""

    problems: Problems
    checks: Callable[[], Iterable[str]] = tuple
    good: str = "OK"
    bad: str

    async def overview(self, request: web.BaseRequest) -> web.Response:
        """Answer for all checks together."""
        excluded = set(request.query.getall("exclude", ()))
        found = {name: why for name, why in self.problems().items() if name not in excluded}
        if "verbose" in request.query:
            return _answer(self._verbose(found, excluded), well=not found)
        if not found:
            return _answer(self.good, well=True)
        lines = [self.bad, *(f"{name}: {why}" for name, why in sorted(found.items()))]
        return _answer("\n".join(lines) + "\n", well=False)

    async def single(self, name: str) -> web.Response | None:
        """Answer for the check ``name``; None if there is none."""
        found = self.problems()
        if name in found:
            return _answer(f"{found[name]}\n", well=False)
        return _answer(self.good, well=True) if name in set(self.checks()) else None

    def _verbose(self, found: Mapping[str, str], excluded: set[str]) -> str:
        lines = []
        for name in sorted({*self.checks(), *found, *excluded}):
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
            elif name in found:
                lines.append(f"[-]{name} failed: {found[name]}")
            else:
                lines.append(f"[+]{name} ok")
        lines.append(self.bad if found else self.good)
        return "\n".join(lines) + "\n"


def _answer(text: str, *, well: bool) -> web.Response:
    # A proxy between the two must not answer in our place.
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return web.Response(status=200 if well else 500, text=text, headers=headers)
