"""One connection to one API server.

Promises: every verb returns typed, frozen objects or raises a class of :mod:`mcm.client.errors`
that says what the caller may do. A request is repeated here only where that cannot do a thing
twice, within the call's time, and never sooner than the server allowed (Retry-After). A write is
sent only while ``fence()`` lets it. Credentials and certificates are fresh at every request and
never appear in texts, reprs or logs.

Order: none between calls; what a caller awaits one after the other is sent so. Cancelling a call
closes its connection; the server may have acted all the same. A watch yields raw chunks and lives
as long as its context. Whoever made the :class:`Client` closes it; that closes its transport.

The verbs are declared in ``verbs``, for whoever has them: who reads or writes depends on those and
not on the client. The pure parts are ``requests``, ``answers``, ``retry``; the connection is
``http`` with ``tls``, ``credentials``, ``execplugin``; where to connect comes from ``kubeconfig``
or ``incluster``. Nothing is re-exported, so that importing one part does not load the others.
"""
