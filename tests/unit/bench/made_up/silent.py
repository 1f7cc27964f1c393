"""Ends well, and says nothing."""
