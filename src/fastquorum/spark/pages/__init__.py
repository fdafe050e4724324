"""The pages of the pipelines: each makes a `pages.Page` of a report as `--format json` has it, and of nothing else.

Needs neither Spark nor pyarrow: a report that was kept can be made a page of anywhere.
"""
