"""The types of every object we touch, their names, and what follows from them without I/O.

* Types: :mod:`~mcm.api.meta` (what all share), :mod:`~mcm.api.core` (built-in kinds),
  :mod:`~mcm.api.machine` (our kinds). Frozen, with only the fields we use; containers inside are
  read-only by convention, so any object may be shared between stores, tasks and plans.
* Bytes: :mod:`~mcm.api.codec` decodes objects, lists and watch frames. It raises DecodeError and
  nothing else, and one bad object in a list does not spoil the others.
* Writes: :mod:`~mcm.api.patches` computes merge patches; a decoded object is never written whole.
* Rules: :mod:`~mcm.api.validation` reports all faults and never raises, :mod:`~mcm.api.defaulting`
  says what applies where nothing is said, :mod:`~mcm.api.selectors` who is meant.
* Texts: :mod:`~mcm.api.names`, :mod:`~mcm.api.durations`, :mod:`~mcm.api.timestamps`,
  :mod:`~mcm.api.quantities`, :mod:`~mcm.api.labels`.
* :mod:`~mcm.api.crds` describes our kinds to an API server.

Everything is synchronous and pure; import the modules, this package re-exports nothing.
"""
