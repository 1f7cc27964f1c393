"""What the commands share that talk to a cluster as a user does, whatever they are about.

Finding the cluster as kubectl does (:mod:`.connecting`), options by the same names
(:mod:`.options`), one line and an exit code where something fails (:mod:`.running`), tables
(:mod:`.tables`) and live views (:mod:`.terminal`). Nothing here knows a kind by name.
"""
