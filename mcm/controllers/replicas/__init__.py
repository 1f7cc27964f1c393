"""What is true of the machines of any set, whoever looks: the set itself, or its deployment.

Which of them count (:mod:`.membership`) and serve (:mod:`.availability`), which goes first when
some must go (:mod:`.deletion_order`), what of a template reaches them without replacing them
(:mod:`.in_place_fields`), and whether somebody wants one kept (:mod:`.preserve_request`). Pure
functions of what is observed; nothing here writes.
"""
