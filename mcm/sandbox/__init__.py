"""An embedded Kubernetes cluster, run by users: API server, cloud and kubelets in one process.

:mod:`mcm.sandbox.apiserver` is the server, which knows nothing of machines;
:mod:`mcm.sandbox.world` is what a real cluster runs around one: scheduler, workload controllers,
cloud and kubelets, each a client like any other. :mod:`mcm.sandbox.loopback` carries a client's
requests to the server without sockets. :mod:`mcm.sandbox.cluster` makes a cluster of them, with
our kinds defined and, if wanted, the samples applied.

Promises: a request is answered in one step, so requests never interleave; watchers get every
change once, in the order of revisions; time and chance are injected, so that one seed gives one
history; objects are never changed once stored, and share their bytes with all who read them.
Whoever opens a stream closes it. No room below imports this one.
"""
