"""The driver as the controllers call it: whoever asks a cloud for anything asks here.

:class:`Provider` is the gate: it lets a verb through while the fence is open, for as long as it may
take (``bounded``), and makes of every way in which it can fail one :class:`ProviderFailed`
(``failures``, ``responses``) in which no secret shows (``masking``). :class:`Places` says whose
turn it is; ``credentials`` merges the secrets that a class refers to. No controller sees the driver
itself.
"""

from __future__ import annotations

from mcm.controllers.provider.credentials import Credentials, collect, secret_keys_of
from mcm.controllers.provider.failures import ProviderFailed
from mcm.controllers.provider.gate import CALL_LIMIT, Provider
from mcm.controllers.provider.metrics import DriverMetrics
from mcm.controllers.provider.places import Places, Purpose

__all__ = [
    "CALL_LIMIT",
    "Credentials",
    "DriverMetrics",
    "Places",
    "Provider",
    "ProviderFailed",
    "Purpose",
    "collect",
    "secret_keys_of",
]
