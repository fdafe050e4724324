"""The controller of a metadata log: its requests, its image, and the brokers that it tells."""
