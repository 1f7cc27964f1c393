"""How objects merge field by field: types, sets of paths, and the merge of server-side apply.

:mod:`types` reads list types, merge keys and patch strategies out of schemas; :mod:`sets` names the
fields of an object as ``fieldsV1`` does, and tells what a write changed; :mod:`merging` lays an
applied configuration over a live object and takes away what its manager gave up. All functions are
pure, and results share unchanged subtrees with their arguments.
"""
