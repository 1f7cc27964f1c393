"""From whatever a driver raises to one kind of failure, with a text that is fit to be shown."""

from __future__ import annotations

import logging
import traceback
from typing import final

from mcm.controllers.provider.masking import Mask
from mcm.driver.codes import Code
from mcm.driver.errors import DriverError, as_driver_error

logger = logging.getLogger(__name__)

LONGEST_TEXT = 2048
"""Characters of an error that are shown: it ends up in the machine's status."""

_LONGEST_TRACEBACK = 8 * 1024
_LONGEST_READ = 64 * 1024
"""Characters of a text that are looked at for what must not be shown."""


@final
class ProviderFailed(Exception):
    """A driver call that did not succeed.

    ``error`` is None if nothing is known of it but its text; ``text`` is what users are shown. No
    value of the class's secrets is in either, nor in what a traceback of this shows: what the
    driver raised is not linked to it.
    """

    def __init__(self, error: DriverError | None, text: str) -> None:
        self.error = error
        self.text = text
        super().__init__(error, text)

    def __str__(self) -> str:
        return self.text

    @property
    def code(self) -> Code:
        return self.error.code if self.error else Code.UNKNOWN

    def as_driver_error(self) -> DriverError:
        """The same, for the controller runtime to log and back off."""
        return self.error or DriverError(Code.UNKNOWN, self.text)


def failed(code: Code, message: str) -> ProviderFailed:
    """Return a failure of which the gate itself knows what happened."""
    error = DriverError(code, message)
    return ProviderFailed(error, str(error))


def failure_of(raised: BaseException, *, verb: str, subject: str, mask: Mask) -> ProviderFailed:
    """Return what ``raised`` by the driver means; log it if the contract does not allow it.

    All texts go through ``mask``, but for ``last_known_state``: that is the driver's own, and comes
    back to it.
    """
    known = _understood(raised)
    if known is None:
        # Formatted here: every exception in the chain may have a value of the secret in its text.
        lines = _masked("".join(traceback.format_exception(raised))[-_LONGEST_READ:], mask)
        logger.error(
            "a driver raised what it must not",
            extra={"verb": verb, "subject": subject, "error": lines[-_LONGEST_TRACEBACK:]},
        )
        return ProviderFailed(None, _shown(f"{type(raised).__name__}: {_text(raised)}", mask))
    if known.code is Code.OK:
        return failed(Code.INTERNAL, f"the driver broke its contract: {verb} failed with code OK")
    error = DriverError(
        _code(known.code),
        _shown(_text(known.message), mask),
        provider_id=_name(known.provider_id),
        node_name=_name(known.node_name),
        last_known_state=_name(known.last_known_state),
    )
    return ProviderFailed(error, str(error))


def _understood(raised: BaseException) -> DriverError | None:
    try:
        return as_driver_error(raised)
    except Exception:  # its text cannot be had
        return None


def _code(value: object) -> Code:
    return value if isinstance(value, Code) else Code.UNKNOWN


def _text(thing: object) -> str:
    try:
        return str(thing)
    except Exception as trouble:  # a driver's exceptions may be as broken as the driver
        return f"<no text: {type(trouble).__name__}>"


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


def _shown(text: str, mask: Mask) -> str:
    """Make ``text`` fit to be shown: first without secrets, then cut."""
    text = _masked(text[:_LONGEST_READ], mask)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _masked(text: str, mask: Mask) -> str:
    return mask(text.encode(errors="replace").decode())
