"""The promises, each checked against the ghost at the moment it could be broken. Names: S1..S30 of the list in the
documentation.

`state` looks at a node after each event, `emissions` into each frame as it leaves, `clients` at what callers are told.
"""
