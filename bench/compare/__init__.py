"""`python -m bench compare`: the same workloads on ours, on the peers and on the C floor, in one run on one disk."""
