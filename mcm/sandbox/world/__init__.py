"""The cluster around the API server: each part an actor that watches and writes like a client.

:class:`.world.World` runs them all until cancelled, and owns every task. The controllers share one
mirror (:mod:`.actor`), keep nothing that is not in the API but what they time, and may be stopped
and started again at any moment. Each has its own user agent, by which the server counts its writes;
a cluster in which nothing happens costs no write but the kubelets' leases.

What is here: Nodes that go silent (:mod:`.node_lifecycle`), the scheduler (:mod:`.placement`
decides), ReplicaSets, Deployments (:mod:`.rollouts`), DaemonSets, StatefulSets
(:mod:`.stateful_sets`), disruption budgets (:mod:`.budgets`), pods of Nodes that are gone, storage
(:mod:`.storage`: claims bound to volumes, volumes attached and detached). Garbage collection and
the end of namespaces come with the server (:mod:`mcm.sandbox.apiserver.garbage`); VMs and kubelets
are the simulated cloud's (:mod:`mcm.providers.simulated`).
What is not: adoption of pods, eviction by NoExecute taints, Jobs.
"""
