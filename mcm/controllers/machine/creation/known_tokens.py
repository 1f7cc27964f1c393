"""The bootstrap tokens in use, by machine UID and by their ids."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import final


@final
@dataclass(frozen=True, slots=True)
class Token:
    """One bootstrap token; the secret part hides from ``repr``."""

    id: str
    secret: str = field(repr=False)
    expires: datetime
    uid: str = ""
    """The UID of its Secret, once that is known."""
    of_go: bool = False
    """The Go original made it: machines of like names may have been made with it, too."""

    @property
    def text(self) -> str:
        return f"{self.id}.{self.secret}"

    @property
    def object_name(self) -> str:
        return object_name(self.id)


def object_name(id_: str) -> str:
    """Return the name of the Secret that holds the token of that id."""
    return f"bootstrap-token-{id_}"


@final
class KnownTokens(MutableMapping[str, Token | None]):
    """What is known of machines' tokens, by machine UID; None: seen to be gone.

    Whose an id is costs the same however many there are.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, Token | None] = {}
        self._users: dict[str, set[str]] = {}

    def __getitem__(self, uid: str) -> Token | None:
        return self._tokens[uid]

    def __setitem__(self, uid: str, token: Token | None) -> None:
        self.pop(uid, None)
        self._tokens[uid] = token
        if token is not None and not token.of_go:
            self._users.setdefault(token.id, set()).add(uid)

    def __delitem__(self, uid: str) -> None:
        token = self._tokens.pop(uid)
        if token is None or token.of_go:
            return
        users = self._users[token.id]
        users.discard(uid)
        if not users:
            del self._users[token.id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)

    def is_used_by_another(self, uid: str, id_: str) -> bool:
        """Tell whether a machine other than that of ``uid`` uses the id as its own: one of the Go
        original is meant for several."""
        return bool(self._users.get(id_, frozenset()) - {uid})
