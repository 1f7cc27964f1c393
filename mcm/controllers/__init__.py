"""The worker runtime, and one package a controller.

Each package has ``controller.py`` with ``build(ctx: ControllerContext)``: it creates queues,
registers informer handlers that turn changes into keys, and returns :class:`.runtime.Controller`
objects, which do nothing before they are run. A reconcile reads from stores only, decides by pure
functions, and writes through the factory's writer only; controllers meet each other only through
objects in the API. What several of them need has a room beside theirs: :mod:`.owning` (owners and
their children, of any two kinds), :mod:`.finalizers` (what is in use stays), :mod:`.replicas` (what
is true of the machines of any set), :mod:`.provider` (the gate to the driver).

Ordering: a key is reconciled by one worker at a time; different keys in any order. Errors: a raised
exception means "again, with back-off" and never ends a worker; :class:`.runtime.TerminalError`
means "not before something changes". Cancelling a controller cancels the reconciles in flight;
shutting its queue down lets them end. The composition root owns and closes clients and stores.
"""
