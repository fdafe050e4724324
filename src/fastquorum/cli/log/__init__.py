"""`fastquorum log ...`: logs that no node runs on."""
