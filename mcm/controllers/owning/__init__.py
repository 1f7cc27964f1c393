"""Owning: what an owner of any kind does about the children of any other kind.

The role that ControllerRefManager and PodControl have in client-go. One frozen description,
:class:`Ownership`, names the two kinds; the engine knows none by name.

======================  ==========================================================================
:mod:`.index`           children by owner UID, orphans by label
:mod:`.claims`          which children to keep, adopt and release (pure)
:mod:`.abandoned`       children that may soon be orphans, and nobody's yet
:mod:`.claiming`        adopting and releasing: the owner proven alive, each child as it was seen
:mod:`.collisions`      whose is the object that has a child's name already
:mod:`.child_control`   creating children by number, never one too many; deleting them; events
:mod:`.ending`          what is left to do for an owner that is being deleted (pure)
:mod:`.owner`           the owner's own finalizer and status: the difference, to the version seen
:mod:`.triggers`        which owners a change of a child, or of an owner, wakes
======================  ==========================================================================

A further family needs an Ownership, a body for its children, and a reconcile that says how many
there should be; ``tests/unit/owning/widgets.py`` is one, whole.

Promises, whatever else writes meanwhile: a child with another controller is never claimed; of two
owners that select one orphan at most one adopts it; an owner that is being deleted adopts nothing;
claiming again changes nothing. Reads come from stores, but for the proof that the owner lives.
Errors of one child keep no other from its turn. Nothing here owns a task or a connection.
"""

from __future__ import annotations

from mcm.controllers.owning.abandoned import abandoned_for, is_orphaning
from mcm.controllers.owning.child_control import ChildControl
from mcm.controllers.owning.claiming import Claimer
from mcm.controllers.owning.claims import controller_reference
from mcm.controllers.owning.collisions import NameTaken, create_or_find
from mcm.controllers.owning.deletion import delete_children
from mcm.controllers.owning.ending import Ending, ending_of
from mcm.controllers.owning.index import (
    children_of,
    count_children,
    index_by_owner,
    index_by_uid,
    orphans_for,
)
from mcm.controllers.owning.owner import OwnerWriter
from mcm.controllers.owning.ownership import Ownership
from mcm.controllers.owning.triggers import wake_owners

__all__ = [
    "ChildControl",
    "Claimer",
    "Ending",
    "NameTaken",
    "OwnerWriter",
    "Ownership",
    "abandoned_for",
    "children_of",
    "controller_reference",
    "count_children",
    "create_or_find",
    "delete_children",
    "ending_of",
    "index_by_owner",
    "index_by_uid",
    "is_orphaning",
    "orphans_for",
    "wake_owners",
]
