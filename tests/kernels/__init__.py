"""The kernels: every test runs over both sets, and Hypothesis holds them against each other."""
