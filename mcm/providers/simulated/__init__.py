"""A cloud that exists as API objects: each VM is a ``VirtualMachine`` (short name ``vm``).

* :mod:`.driver` is what the machine controller talks to: it creates, finds and deletes
  VirtualMachines, with the latencies, quotas and failures that ``providerSpec`` asks for
  (:mod:`.provider_spec`).
* :mod:`.cloud` boots what it finds, and runs a kubelet in each VM (:mod:`.kubelet`), which joins
  the target cluster as a Node, sends heartbeats, and runs the pods bound to it.

The cloud keeps nothing that is not in the API, so driver and cloud may live in different processes,
and either may be restarted. To kill a VM: ``kubectl delete vm NAME``; to crash it and leave it in
the cloud's inventory: ``kubectl patch vm NAME --type=merge -p '{"spec":{"powerState":"Off"}}'``.
"""

from mcm.providers.simulated.driver import provider

__all__ = ["provider"]
