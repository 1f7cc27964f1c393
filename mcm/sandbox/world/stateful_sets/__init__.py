"""StatefulSets: numbered pods with names and volumes of their own, made and ended in order.

:mod:`.controller` is the actor; :mod:`.identity` says what a number stands for, :mod:`.plan` which
pods come and go next, :mod:`.revisions` which templates are known, :mod:`.progress` what the set
says of itself. Claims are made and kept (``Retain``); whoever deletes one deletes its volume.
"""
