"""The generator of the native lane's Fetch layouts."""
