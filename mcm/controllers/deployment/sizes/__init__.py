"""How many machines each set of a deployment should have: bounds, and the steps within them."""
