"""What is done to a fleet, and what it costs until it is done.

:mod:`.fleet` acts as a user does, :mod:`.view` watches how far it is, :mod:`.reactions` how soon a
watch event is answered with a write, :mod:`.meter` measures one phase, and :mod:`.run` puts a
manager through all of them. :mod:`.results` is what comes out.
"""
