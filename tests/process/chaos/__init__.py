"""Chaos: real nodes on hosts of their own, hurt as no proxy and no signal can hurt them, and their histories judged."""
