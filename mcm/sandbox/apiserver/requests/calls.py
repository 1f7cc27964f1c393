"""What every handler gets: the server's state, and the request taken apart."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, final

from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.clock import Clock
from mcm.sandbox.apiserver.authentication.authenticator import Authenticator
from mcm.sandbox.apiserver.authentication.users import ADMIN, User
from mcm.sandbox.apiserver.authorization.authorizer import Authorization
from mcm.sandbox.apiserver.errors import (
    bad_request,
    invalid_options,
    not_supported,
    unsupported_media_type,
)
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo
from mcm.sandbox.apiserver.requests.documents import decode_object
from mcm.sandbox.apiserver.requests.negotiation import Form, media_type_of
from mcm.sandbox.apiserver.requests.routing import Target
from mcm.sandbox.apiserver.store import Store

_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LONGEST_INTEGER = 1000  # leading zeros included
_BODY_TYPES = ("application/json", "application/yaml")
_MANAGER_LIMIT = 128
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_OPTIONS_KINDS = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}


@final
@dataclass(slots=True)
class ServerSettings:
    """What tests and benches may change, at any time.

    ``bookmark_period``: seconds between bookmarks. ``watch_buffer``: undelivered events a watch
    may hold before its stream is closed. ``expired_watch_as_http``: a watch from a compacted
    revision fails with HTTP 410 rather than an ERROR event (upstream does either, by path).
    ``fresh_wait``: seconds a read waits for a revision not yet reached. ``managed_fields``: keep
    metadata.managedFields on ordinary writes; apply patches always do. ``raise_bugs``: an exception
    that is no answer leaves the server instead of becoming a 500. ``event_lifetime``: seconds
    after its last write that an Event is kept. ``read_lag``: how many revisions the answers to
    lists that may be stale (resourceVersion "0" or "not older than") are behind, as those of a
    lagging replica. ``authorization``: everybody may do everything, or what roles and bindings say.
    """

    bookmark_period: float = 60.0
    watch_buffer: int = 4096
    expired_watch_as_http: bool = False
    fresh_wait: float = 3.0
    managed_fields: bool = True
    raise_bugs: bool = False
    event_lifetime: float = 3600.0
    read_lag: int = 0
    authorization: Authorization = "AlwaysAllow"


class OpenStream(Protocol):
    """A watch under way, on the collection ``storage``."""

    @property
    def storage(self) -> str: ...

    def end(self) -> None: ...


@final
@dataclass(frozen=True, slots=True)
class ServerState:
    """The parts all handlers share. ``streams`` are the watches under way."""

    store: Store
    registry: Registry
    clock: Clock
    random: random.Random
    authenticator: Authenticator
    settings: ServerSettings = field(default_factory=ServerSettings)
    streams: set[OpenStream] = field(default_factory=set)

    def now(self) -> datetime:
        return self.clock.now()

    def stamp(self) -> str:
        """Return now as the API writes it, in whole seconds."""
        return rfc3339(self.clock.now())


@final
@dataclass(frozen=True, slots=True)
class Call:
    """One request to a resource. ``query`` holds the first value of each parameter, ``headers``
    have lower-case names."""

    target: Target
    verb: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    form: Form
    agent: str
    user: User = ADMIN

    @property
    def info(self) -> ResourceInfo:
        return self.target.info

    def flag(self, name: str) -> bool:
        """Read a boolean parameter in any of Go's spellings. Raises StatusError (400)."""
        value = self.query.get(name, "")
        if value in _TRUE:
            return True
        if not value or value in _FALSE:
            return False
        raise bad_request(f"invalid value {value!r} for the boolean parameter {name}")

    def number(self, name: str) -> int | None:
        """Read an integer parameter; None if absent. Raises StatusError (400)."""
        value = self.query.get(name, "")
        if not value:
            return None
        problem = ""
        if not _INTEGER.fullmatch(value):
            problem = "invalid syntax"
        elif len(value) > _LONGEST_INTEGER or not -(1 << 63) <= int(value) < 1 << 63:
            problem = "value out of range"
        if problem:
            raise bad_request(f'invalid parameter {name}: parsing "{value}": {problem}')
        return int(value)

    def media_type(self) -> str:
        return media_type_of(self.headers.get("content-type", "application/json"))


@final
@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The parameters all writes share. ``manager`` owns the fields a write sets."""

    manager: str
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False


def write_options(call: Call) -> WriteOptions:
    """Read a write's parameters. Raises StatusError (400, 422)."""
    query = call.query
    agent = call.agent.partition("/")[0][:_MANAGER_LIMIT]
    if not query:
        return WriteOptions(agent)
    validation = query.get("fieldValidation", "")
    if validation not in _VALIDATIONS:
        cause = not_supported("fieldValidation", validation, _VALIDATIONS)
        raise invalid_options(_OPTIONS_KINDS[call.verb], cause)
    return WriteOptions(
        manager=query.get("fieldManager", "") or agent,
        dry_run=is_dry_run(query.get("dryRun", ""), _OPTIONS_KINDS[call.verb]),
        validation=validation or "Warn",
        force=call.flag("force"),
    )


def is_dry_run(value: str, options_kind: str) -> bool:
    """Tell whether a dryRun directive asks for one. Raises StatusError (422) if unknown."""
    if value not in ("", "All"):
        raise invalid_options(options_kind, not_supported("dryRun", value, ("All",)))
    return value == "All"


def decode_body(call: Call) -> JSONObject:
    """Decode the object of a create or update. Raises StatusError (400, 415)."""
    media_type = call.media_type()
    if media_type not in ("", *_BODY_TYPES):
        raise unsupported_media_type(_BODY_TYPES)
    return decode_object(call.body)
