"""`fastquorum image`, and the images that other commands show."""
