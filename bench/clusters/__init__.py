"""API servers to measure at: a real one and the sandbox, both started here, or anybody's.

:mod:`.server` starts or finds one, :mod:`.namespaces` prepares a place in it and cleans up,
:mod:`.requests` counts what it answered, :mod:`.raw_rates` what it can answer at most
(:mod:`.generator` asks), and :mod:`.counting` knows what the bench itself asked of it.
"""
