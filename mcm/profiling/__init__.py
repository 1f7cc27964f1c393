"""Where this process spends its time and its memory: asked for while it runs, at a bounded price.

- :mod:`.cpu` samples what threads do while they are on the CPU; :mod:`.heap` what was allocated
  and not given back. Both return a :class:`.profile.Profile`, which :mod:`.pprof` and
  :mod:`.collapsed` write in formats that other programs read.
- :mod:`.tasks` shows what every asyncio task waits for, and :mod:`.threads` where threads are.
- :mod:`.stalls` notices when the event loop stands still, measures for how long, and names in what.

No package that is kept up writes pprof's format or samples an asyncio process from within; what is
needed of either is little.
"""
