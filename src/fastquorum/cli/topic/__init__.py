"""`fastquorum topic ...`: topics are created, moved, deleted and shown."""
