"""Whose a bootstrap token's id is, known without looking at all tokens."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from mcm.controllers.machine.creation.known_tokens import KnownTokens, Token

_UIDS = ("u", "v", "w")
_IDS = ("aaaaaa", "bbbbbb")
_tokens = st.none() | st.builds(
    Token,
    id=st.sampled_from(_IDS),
    secret=st.just("s"),
    expires=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    of_go=st.booleans(),
)


@given(st.lists(st.tuples(st.sampled_from(_UIDS), _tokens, st.booleans()), max_size=30))
def test_it_says_what_a_look_at_all_would(steps: list[tuple[str, Token | None, bool]]) -> None:
    known = KnownTokens()
    plain: dict[str, Token | None] = {}
    for uid, token, gone in steps:
        if gone:
            known.pop(uid, None)
            plain.pop(uid, None)
        else:
            known[uid] = plain[uid] = token
        assert dict(known) == plain
        for asking in _UIDS:
            for id_ in _IDS:
                users = {u for u, t in plain.items() if t and t.id == id_ and not t.of_go}
                assert known.is_used_by_another(asking, id_) == bool(users - {asking})
