"""Managers of machines as processes: :mod:`.command` says how they are started, :mod:`.process`
runs one and reads what it uses, :mod:`.queues` how much work waits in it."""
