"""Taking the pods off a machine's Node, be it for deletion, update in place or preservation.

Who needs it says so in a :class:`.request.DrainRequest`, and is told after each pass whether it is
done (:class:`.node_drain.NodeDrain`). What the answer means for the machine is the asker's to say.
"""
