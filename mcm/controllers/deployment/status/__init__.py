"""What the status of a deployment says: its counts, and a module for what a condition tells."""
