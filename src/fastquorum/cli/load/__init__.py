"""`fastquorum load` and `profile`: a quorum under load."""
