"""What runs in the contenders' processes. `go/`, `java/` and the modules here speak the same lines, see `workload`."""
