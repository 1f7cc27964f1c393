"""The driver as the controllers call it: whoever asks a cloud for anything asks here.

``gate`` lets a verb through and makes of every way in which it can fail one
:class:`ProviderFailed`; ``places`` says whose turn it is; ``credentials`` merges the secrets that a
class refers to. The driver itself is known to nobody else.
"""

from __future__ import annotations

from mcm.controllers.provider.credentials import Credentials, collect, secret_keys_of
from mcm.controllers.provider.gate import Provider, ProviderFailed
from mcm.controllers.provider.metrics import DriverMetrics
from mcm.controllers.provider.places import Places, Purpose

__all__ = [
    "Credentials",
    "DriverMetrics",
    "Places",
    "Provider",
    "ProviderFailed",
    "Purpose",
    "collect",
    "secret_keys_of",
]
