"""A validating admission webhook: the API server asks, :mod:`mcm.api.validation` answers.

:mod:`.review` reads the question and writes the answer, :mod:`.judgement` decides; both are pure.
:mod:`.server` listens with TLS (:mod:`mcm.serving_certificate` keeps to the files that others
rotate), and :mod:`.configuration` is what makes an API server ask.

It acts on nothing and holds no state, so every replica answers, whoever leads; what it refuses,
the controllers would refuse to act on. An object that is invalid already can always be deleted,
freed of its finalizers, and changed in ways that make it no worse.
"""
