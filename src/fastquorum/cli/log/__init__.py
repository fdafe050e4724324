"""`fastquorum log ...`: logs that nobody runs."""
