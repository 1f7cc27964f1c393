"""The faults of one scenario, drawn from its seed."""

from __future__ import annotations

import random as randomness
from typing import final

from tests.faults.harm import UNHARMED, Exchange, Fate, Harm, error_event

_WATCH_ONLY = (Harm.CUT_BETWEEN, Harm.ENDED, Harm.REPLAYED, Harm.LAST_WORDS)
_GARBAGE = (
    b"upstream connect error or disconnect/reset before headers\n",
    b'{"type":"MODIFIED","object":{"metadata":{"name":"m1"\n',
    b'{"type":"ERROR","object":"no status"}\n',
    b"\xff\xfe\x00\n",
)
_FIRST_WORDS = (b"<html>a login page</html>", b'{"kind":"List"}', b"")


@final
class Weather:
    """Decides the fate of each exchange from the seed and the exchange's number alone.

    Each scenario has a character: how often something happens, and which few things.
    """

    def __init__(self, seed: int) -> None:
        chance = randomness.Random(f"{seed} weather")
        harms = [harm for harm in Harm if harm is not Harm.NONE]
        self.seed = seed
        self.rate = chance.choice((0.3, 0.55, 0.8))
        self.harms = tuple(chance.sample(harms, chance.randint(2, 6)))
        self.silences = chance.randint(0, 3)
        """How many exchanges may go silent: each costs the client its patience."""

    def __str__(self) -> str:
        return f"rate {self.rate}: {', '.join(harm.name.lower() for harm in self.harms)}"

    def fate_of(self, exchange: Exchange) -> Fate:
        chance = randomness.Random(f"{self.seed} exchange {exchange.number}")
        if chance.random() >= self.rate:
            return UNHARMED
        harm = chance.choice(self.harms)
        if harm in (Harm.SILENT, Harm.FROZEN):
            if not self.silences:
                return UNHARMED
            self.silences -= 1
        if harm in _WATCH_ONLY and not exchange.watch:
            return UNHARMED
        return _drawn(harm, chance)


def _drawn(harm: Harm, chance: randomness.Random) -> Fate:
    frames = chance.choice((0, 0, 1, 2, 3, 5, 8, 13))
    match harm:
        case Harm.DELAYED | Harm.STALLED:
            return Fate(harm, frames, seconds=chance.uniform(0.001, 0.12))
        case Harm.ANSWERED:
            return _answer(chance)
        case Harm.LAST_WORDS:
            words = (error_event(410), error_event(500), error_event(429), *_GARBAGE)
            return Fate(harm, frames, line=chance.choice(words))
    return Fate(harm, frames, hard=chance.random() < 0.5)


def _answer(chance: randomness.Random) -> Fate:
    code = chance.choice((410, 429, 429, 500, 503, 200))
    if code == 200:
        return Fate(Harm.ANSWERED, code=200, line=chance.choice(_FIRST_WORDS))
    wait = ""
    if code in (429, 503):
        # Whole seconds is all the header can say, so the longer wait is rare.
        wait = chance.choices(("", "0", "1"), (6, 6, 1))[0]
    return Fate(Harm.ANSWERED, code=code, retry_after=wait)
