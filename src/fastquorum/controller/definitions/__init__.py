"""Which configurations there are, of topics, groups, nodes and subscriptions: types, defaults and the values taken."""
