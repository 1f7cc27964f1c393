"""A Kubernetes API server in one process: a plain object that answers requests over a store.

:class:`~.server.ApiServer` puts it together. ``requests`` takes a request apart and finds its
handler; ``reading`` and ``writing`` hold the rules of what may be read and stored;
``definitions`` makes custom resources servable; ``garbage`` removes what nobody deletes by a
request; ``kinds`` are the built-in ones. Without a server around them work ``store``, ``schema``,
``fields``, ``patches``, ``protobuf``, ``tables`` and ``openapi``. ``front`` puts it on the network.

Handlers are synchronous functions of the server's state and a :class:`~.requests.calls.Call`. They
raise :class:`~.errors.StatusError` to fail, before anything is committed, and commit at most one
object (an eviction also the budget it spends, first). :mod:`~.writing.create_update` and
:mod:`~.writing.deletion` hold what every write goes through, whoever asks for it;
:mod:`~.reading.rendering` what every answer does. Objects are plain dicts that nobody may change:
a new state is a new dict that shares the rest.

Codes, reasons and bodies follow kube-apiserver, its oddities included where a client could notice.
Of machines nothing is known here: this room imports Kubernetes' own types, the request of the
client's transport and the clock, and nothing else of this project.
"""
