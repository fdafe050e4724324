"""`fastquorum shell`: a metadata image as a file system."""
