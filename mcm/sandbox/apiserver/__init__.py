"""The rules of the API server, one module a subject; :mod:`mcm.sandbox.server` puts them together.

Handlers are synchronous functions of the server's state and a :class:`~.calls.Call`. They raise
:class:`~.errors.StatusError` to fail, before anything is committed, and commit at most one object
(an eviction also the budget it spends, first). :mod:`~.writing` and :mod:`~.deletion` hold what
every write goes through, whoever asks for it; :mod:`~.rendering` what every answer does. Objects
are plain dicts that nobody may change: a new state is a new dict that shares the rest.

Codes, reasons and bodies follow kube-apiserver, its oddities included where a client could notice.
"""
