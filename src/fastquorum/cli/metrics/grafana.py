"""`fastquorum metrics grafana`: the dashboard, to be imported into Grafana."""

import argparse

from fastquorum.cli.terminal.arguments import explain


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Print the Grafana dashboard as JSON. Import it (Dashboards, New, Import); there choose the Prometheus that "
        "scrapes the nodes' /metrics, and the job.",
        "fastquorum metrics grafana > fastquorum.json",
    )


def run(arguments: argparse.Namespace) -> int:
    from fastquorum.observe.catalogue import dashboard

    print(dashboard(), end="")
    return 0
