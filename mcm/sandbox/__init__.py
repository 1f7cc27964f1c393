"""An embedded Kubernetes cluster: API server, cloud and kubelets in one process.

:class:`mcm.sandbox.server.ApiServer` is the heart: a plain object that answers requests over a
versioned store (:mod:`mcm.sandbox.store`). :mod:`mcm.sandbox.loopback` carries a client's requests
to it without sockets; :mod:`mcm.sandbox.http` puts it on the network. What a real cluster's
controllers do is done by actors that can be left out: :mod:`mcm.sandbox.garbage`,
:mod:`mcm.sandbox.namespaces`, :mod:`mcm.sandbox.world`.

Promises: a request is answered in one step, so requests never interleave; watchers get every
change once, in the order of revisions; time and chance are injected, so that one seed gives one
history; objects are never changed once stored, and share their bytes with all who read them.
Whoever opens a stream closes it. No room below imports this one.
"""
