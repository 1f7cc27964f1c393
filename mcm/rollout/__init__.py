"""``mcm rollout``: plan, watch, undo, pause, resume and restart the updates of MachineDeployments.

The commands are kubectl's, for a kind that kubectl does not roll, and one more: ``plan`` asks the
controllers' own decisions what they would do next, and shows it. Commands read and write the API as
any user does; no manager needs to run for them.
"""
