"""Where appends and read barriers come into a node from outside its replica's thread.

`tickets` is the way in over any shell; `node.io.native.waiters` has the native one, with fewer detours. Both are made
by `node.io.machines`.
"""
