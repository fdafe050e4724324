"""`fastquorum doctor`: what is installed here, and what is wrong."""
