"""The `fastquorum` command. Each subcommand is a module of its own with `configure(parser)` and `run(arguments)`,
imported only when it is called, so that `--help` is quick.

The top of the house: it may import everything, and nothing imports it.
"""
