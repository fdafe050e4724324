"""Generators of the lane's Fetch layouts, Python and C++."""
