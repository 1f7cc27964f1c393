"""A cloud whose VMs take no time, for whichever manager is measured.

:mod:`.provider` is mcm's driver for it, found as any out-of-tree provider is (:mod:`.plug_in`). Its
VMs are names in the manager's own process: a call of it costs neither a request nor a moment, so
that what is measured is the manager. :mod:`.kubelets` is a part of the bench, in the bench's
process: it watches Machines and lets a Ready Node join for each that was given a provider ID. It
knows nothing of the driver, so that a manager with a driver of its own is served the same way.
"""
