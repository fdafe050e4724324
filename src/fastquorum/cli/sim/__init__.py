"""`fastquorum sim ...`: whole quorums in simulated time."""
