"""Benchmarks: ratios against yardsticks of the same run, taking turns. `python -m bench`; see README.md."""
