"""``mcm drain`` and ``mcm uncordon``: drain a Node by hand, foretell it, and undo it.

The commands are kubectl's by name, and run the controllers' own drain engine: budgets, volumes and
waves are treated as they are when a machine is deleted. They read and write the API as any user
does; no manager needs to run for them.
"""
