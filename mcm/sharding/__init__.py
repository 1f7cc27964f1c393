"""Several managers for one namespace: each looks after the objects that its selector matches.

Which shard looks after an object stands on the object, as its mark (:data:`.shard.MARK`); a shard
runs reconciles of nothing else. Where an object belongs is decided by its root: the deployment
above it, else the set above it, else itself. Promised is:

* no two shards ever reconcile one object: a mark is set on what bears none, or changed by the shard
  that it names, which has stopped reconciling the object before, both bound to the version read;
* nothing is without a shard in between: an object is handed over to a shard in one write, to one
  that is alive and alone in wanting it; until then whoever has it keeps it;
* nobody else acts beside the shards: all of them hold the two leases of unsharded managers
  together, under one name (:data:`.shard.JOINT_IDENTITY`);
* what cannot be divided is done by one of them, the holder of one more lease
  (:mod:`.shared_duties`).

:mod:`.membership` and :mod:`.peers` decide, purely; :mod:`.gate` stands before the controllers,
:mod:`.hand_over` writes marks, :mod:`.stamp` puts them on what is made, :mod:`.survey` counts what
belongs nowhere, or to several.
"""
