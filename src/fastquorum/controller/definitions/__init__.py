"""The configurations of topics, groups, nodes and subscriptions: types, defaults and legal values."""
