"""`fastquorum broker ...`: the brokers of a cluster, as its controllers know them."""
