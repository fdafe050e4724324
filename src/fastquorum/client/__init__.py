"""A quorum asked from outside, by who is no part of it: found, read, appended to. Blocking; one thread at a time."""
