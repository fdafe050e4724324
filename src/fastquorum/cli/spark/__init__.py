"""`fastquorum spark ...`, `audit ...` and `report ...`: questions about many logs."""
