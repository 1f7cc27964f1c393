"""From what a request brings to the user who sends it."""

from __future__ import annotations

import hmac
from typing import final

from mcm.sandbox.apiserver.authentication.account_tokens import (
    ISSUER,
    AccountTokens,
    InvalidToken,
    Proof,
)
from mcm.sandbox.apiserver.authentication.users import AUTHENTICATED, User
from mcm.sandbox.apiserver.errors import StatusError


@final
class Authenticator:
    """Knows the tokens of users that it was told of, and those of service accounts."""

    def __init__(self, accounts: AccountTokens) -> None:
        self.accounts = accounts
        self._known: dict[bytes, User] = {}

    def learn(self, token: str, user: User) -> None:
        """Take ``token`` for ``user`` from now on."""
        groups = user.groups if AUTHENTICATED in user.groups else (*user.groups, AUTHENTICATED)
        self._known[token.encode()] = User(user.name, groups, user.uid, user.extra)

    def proof_of(self, token: str) -> Proof:
        """Return what a token proves; a user's is good for this server. Raises InvalidToken."""
        given = token.encode("utf-8", "surrogateescape")
        found = [user for known, user in self._known.items() if hmac.compare_digest(known, given)]
        return Proof(found[0], (ISSUER,)) if found else self.accounts.proof_of(token)

    def user_of(self, authorization: str) -> User:
        """Return who sends a request with this header. Raises StatusError (401)."""
        scheme, _, token = authorization.partition(" ")
        try:
            if scheme.lower() == "bearer":
                proof = self.proof_of(token.strip())
                if ISSUER in proof.audiences:
                    return proof.user
        except InvalidToken:
            pass  # why, only a TokenReview tells
        raise StatusError(401, "Unauthorized", "Unauthorized")
