"""Declarations into codecs: Python functions that encode and decode, JSON forms, layouts."""
