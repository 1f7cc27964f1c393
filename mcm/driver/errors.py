"""What a provider raises, and the text form in which such an error travels through statuses.

The text form ``machine codes error: code = [<Code>] message = [<text>]`` is read by other programs,
so it is exact. Providers outside this process hand over nothing but that text; :func:`decode` gets
the error back from it.
"""

from __future__ import annotations

from typing import final

from mcm.driver.codes import Code


@final
class DriverError(Exception):
    """A provider's refusal or failure.

    ``provider_id`` and ``node_name`` must be given with ``UNINITIALIZED`` (the VM exists, its
    set-up does not) and mean nothing otherwise. ``last_known_state`` is kept on the machine and
    handed back with its next request; leave it empty when there is nothing to remember.
    The message is shown to users: it must hold no credentials.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        provider_id: str = "",
        node_name: str = "",
        last_known_state: str = "",
    ) -> None:
        self.code = code
        self.message = message
        self.provider_id = provider_id
        self.node_name = node_name
        self.last_known_state = last_known_state
        super().__init__(code, message)

    def __str__(self) -> str:
        return f"machine codes error: code = [{self.code.text}] message = [{self.message}]"


def decode(text: str) -> DriverError | None:
    """Read an error's text form; None if it is not one.

    Exactly two bracketed groups at top level count: the code's name, then the message. Brackets
    inside a group belong to it, a closing bracket without an opening one to nothing.
    """
    groups = _top_level_groups(text)
    if len(groups) != 2:
        return None
    return DriverError(Code.from_text(groups[0]), groups[1])


def as_driver_error(error: BaseException) -> DriverError | None:
    """See any exception that came out of a driver as a :class:`DriverError`.

    None means that nothing can be said of it but its text: it is handled as an unknown code whose
    cause will not go away by itself.
    """
    if isinstance(error, DriverError):
        return error
    if isinstance(error, TimeoutError):
        return DriverError(Code.DEADLINE_EXCEEDED, str(error) or "the provider did not answer")
    return decode(str(error))


def _top_level_groups(text: str) -> list[str]:
    groups: list[str] = []
    depth = 0
    start = 0
    for position, character in enumerate(text):
        if character == "[":
            if depth == 0:
                start = position + 1
            depth += 1
        elif character == "]" and depth > 0:
            depth -= 1
            if depth == 0:
                groups.append(text[start:position])
    return groups
