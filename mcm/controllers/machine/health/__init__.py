"""Whether a machine is healthy, and how many of a deployment may be given up at a time."""
