"""The demo of a whole cluster, without Java: three controllers, brokers that register with them, and a verdict."""
