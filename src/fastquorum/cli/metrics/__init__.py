"""`fastquorum metrics ...`: what a node tells of itself."""
