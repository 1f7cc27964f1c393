"""Which release of Kubernetes a server is, asked once: what it can do may depend on it."""

from __future__ import annotations

import re
from typing import Final, final

import msgspec

from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectReader

_NUMBER: Final = re.compile(r"[0-9]+")


class _Version(msgspec.Struct, frozen=True):
    """As ``/version`` answers; vendors append to the minor number, as ``28+``."""

    major: str = ""
    minor: str = ""


@final
class ServerVersion:
    """Asks when the answer is first needed, and again only if there was none."""

    def __init__(self, client: ObjectReader) -> None:
        self._client = client
        self._known: tuple[int, int] | None = None

    async def is_at_least(self, major: int, minor: int) -> bool:
        """Tell whether the server is certainly that new. False too if it does not say, or says what
        cannot be read. Raises only what the fence does."""
        if self._known is None:
            self._known = await self._ask()
        return self._known is not None and self._known >= (major, minor)

    async def _ask(self) -> tuple[int, int] | None:
        try:
            version = msgspec.json.decode(await self._client.get_raw("/version"), type=_Version)
        except (KubeError, msgspec.DecodeError):
            return None
        numbers = [_NUMBER.match(part) for part in (version.major, version.minor)]
        major, minor = (int(found.group()) if found else -1 for found in numbers)
        return None if min(major, minor) < 0 else (major, minor)
