"""The cluster around the API server: each part an actor that watches and writes like a client."""
