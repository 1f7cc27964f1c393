from __future__ import annotations

from hypothesis import settings

# The machines that run the tests may be busy with something else.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
