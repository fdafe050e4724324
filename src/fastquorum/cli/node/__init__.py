"""`fastquorum format`, `run` and `handover`: one node and its data directory."""
