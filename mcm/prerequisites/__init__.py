"""What clusters must serve before a manager can work, and how to mend what they lack."""
