"""Updates in place: machines keep object, VM and Node, and move from old sets to the new one.

The Node's labels ask for it, the machine controller drains, a node agent works
(:mod:`mcm.controllers.in_place_marks`). Decided here: where each machine stands, and who is next
(:mod:`.standing`), how many (:mod:`.selection`), sizes of sets (:mod:`.sizes`), which machines
change their set (:mod:`.transfer`, carried out by :mod:`.hand_over`), what Nodes bear
(:mod:`.node_marks`), what sets bear (:mod:`.scale_up`), what is told of it (:mod:`.remarks`), and
whom a change wakes (:mod:`.wakeups`). Everything follows from objects: a pass that ends between any
two writes is gone on from by the next one, and so is what the Go original left.

A machine that was moved bears ``update-result=successful`` until its new set's size has caught up:
the set never takes it for surplus. The set that it came from bears ``scale-up-disabled`` before it
goes: that set never makes another one in its place.
"""
