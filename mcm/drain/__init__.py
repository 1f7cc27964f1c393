"""The drain engine: what to do about the pods of a node that is about to go.

A drain is a record, not a task: start, deadline and mode follow from what asks for it, the pods and
volumes are the cluster's, and the little that neither tells is kept in :mod:`.record`. Who wants a
Node empty says so in a :class:`.request.DrainRequest`, and has :class:`.engine.DrainEngine` pass
over it. A pass plans (:mod:`.plan`, pure), asks (:mod:`.execution`), and plans again until nothing
more is to be asked now; it never waits for a pod. It may be cancelled at any await and repeated by
anyone: each request bears the pod's UID.

What is promised: DaemonSet and mirror pods stay, and what a label spares; the others leave wave by
wave (:mod:`.selection`), pods without volumes at once, those with exclusively attached volumes as
the lanes of their attachers allow, until these are attached elsewhere (:mod:`.volumes`). Budgets
are honoured (:mod:`.budgets`) until a pod has refused for as long as its retries stand for, or the
mode says force: a label, the deadline, or a Node ill for five minutes. A forced pass waits for
nothing. Nothing is concluded from a mirror that may be of the past.
"""
