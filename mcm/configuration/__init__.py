"""Flags of the manager: one table, read from a command line into :class:`mcm.options.Options`."""
