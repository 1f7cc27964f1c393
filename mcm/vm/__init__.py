"""``mcm vm``: one VM of a machine class, made and unmade by hand, without a manager.

For trying out a class, its credentials or a provider before a fleet depends on them; what the field
calls ``managevm``. No cluster is needed, unless the provider's cloud is one.
"""
