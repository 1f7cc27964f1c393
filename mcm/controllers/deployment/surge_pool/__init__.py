"""Surge pools: deployments, one a zone as a rule, that share one surge and one unavailability.

A member names its pool in the annotation ``deployment.machine.sapcloud.io/surge-pool``. However
many members are updated at once, all of them together never have more machines than the sum of
their replicas and the pool's surge, and never cost more that serve than the pool's unavailability.

==================  ==============================================================================
:mod:`.membership`  which deployments are of a pool, and whom a change of one concerns (pure)
:mod:`.usage`       how much of the budget a member takes, and whether it is in the middle (pure)
:mod:`.budget`      what the pool may take, and what is left of that for one member (pure)
:mod:`.claims`      changes that were decided and may have happened, but are not seen yet
:mod:`.turns`       asks all of these for one pass of one member
:mod:`.conditions`  what a member says of it (pure)
==================  ==============================================================================

Workers decide for several members at a time. Between looking and claiming nothing awaits, so each
decision knows all those before it; nobody waits for anybody, and there is no lock to be left held.
A claim lasts until the mirror shows what became of it. A deployment without the annotation pays one
look-up of its own annotations.
"""
