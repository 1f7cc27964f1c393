"""Benches that go wrong, for the tests of what runs them."""
