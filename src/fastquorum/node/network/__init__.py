"""A replica's connections: requests that come, requests that go, and who can be reached."""
