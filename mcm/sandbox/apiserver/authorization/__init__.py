"""Who may do what: requests as attributes, rules of roles, and the words of a refusal."""
