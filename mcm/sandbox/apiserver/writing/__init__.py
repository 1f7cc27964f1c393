"""What becomes of an object that a client sends or deletes: the rules every write goes through."""
