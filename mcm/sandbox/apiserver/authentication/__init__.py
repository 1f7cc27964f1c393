"""Who asks: users, the tokens that prove one, and whom one may pose as."""
