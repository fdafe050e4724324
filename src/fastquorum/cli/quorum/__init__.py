"""`fastquorum quorum`, `append`, `read`: a running quorum, asked from outside."""
