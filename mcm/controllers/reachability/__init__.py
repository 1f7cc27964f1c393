"""Whether the API servers can be reached; while one cannot, nothing is destroyed."""
