"""Names and addresses as real networks have them, in a network and mount namespace of their own."""
