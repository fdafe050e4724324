"""`fastquorum spark placement`: how leaders and replicas lie over brokers and racks, and what would repair it."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from fastquorum.cli.spark import shared
from fastquorum.cli.terminal.arguments import natural, number
from fastquorum.cli.terminal.output import print_table
from fastquorum.errors import UsageError
from fastquorum.pages.new_files import new_directory, new_file
from fastquorum.spark.pages.placement import LOSSES_MAX, MOVES_MAX, page_of

if TYPE_CHECKING:
    from fastquorum.spark.pipelines.placement import Placement

_SHOWN: Final = 20
"""Rows of each table that a person is shown."""
_JSON: Final = ".json"


def configure(parser: argparse.ArgumentParser) -> None:
    shared.configure(
        parser,
        "Show how each cluster's leaders and replicas are spread over its brokers and racks; which partitions would "
        "be offline or under their least ISR if a broker or a rack were lost, and which brokers would lead instead; "
        "and the fewest moves that repair the placement: replicas on brokers that are fenced or gone, replicas that "
        "share a rack, brokers that carry too much.\n"
        f"{shared.BY_WHICH} --out DIR has a directory for each of brokers, losses, moves and summary.\n"
        "Exits 1 if a cluster, a directory or a part of one could not be read.",
        "fastquorum spark placement /var/lib/controllers --reassignment-json plan.json",
        "fastquorum topic reassign plan.json --bootstrap h1:9093",
    )
    parser.add_argument(
        "--at", metavar="OFFSET", type=natural, help="at this offset (default: the last one that the logs determine)"
    )
    parser.add_argument(
        "--reassignment-json",
        metavar="PATH",
        help="write the moves as `fastquorum topic reassign` and kafka-reassign-partitions take them: a .json file, or "
        "a directory with one for each cluster",
    )
    parser.add_argument(
        "--tolerance",
        metavar="PART",
        type=_part,
        default=0.1,
        help="how far from the average a broker may be before replicas or leaders move (default: 0.1)",
    )
    parser.add_argument(
        "--keep-fenced", action="store_true", help="fenced brokers will be back: move nothing away from them"
    )
    parser.add_argument("--no-load", action="store_true", help="repair dead brokers and racks only")


def _part(text: str) -> float:
    """An argparse type."""
    return number(text, "a part of the average, as 0.1 is", lambda value: 0 <= value <= 100)


def run(arguments: argparse.Namespace) -> int:
    shared.check_out(arguments, reassignment_json=arguments.reassignment_json)
    path = shared.path_of(arguments)
    inputs = shared.look_in(arguments.master, path)
    with shared.engine_of(arguments) as engine:
        from fastquorum.controller.planning import Limits
        from fastquorum.spark.pipelines.placement import PACKING, as_report

        limits = Limits(arguments.tolerance, load=not arguments.no_load, leaders=not arguments.no_load)
        packed = engine.placements(path, limits, keep_fenced=arguments.keep_fenced, at=arguments.at)
    found = PACKING.unpacked(packed)

    def report(**most: int) -> dict[str, Any]:
        return {**as_report(found, **most), **inputs._asdict()}

    shared.hand_out(
        arguments,
        report,
        lambda: PACKING.tables(found),
        page_of,
        show,
        on_page={"moves_max": MOVES_MAX, "losses_max": LOSSES_MAX},
        on_screen={"moves_max": _SHOWN, "losses_max": _SHOWN},
        last=lambda: _write_moves(arguments.reassignment_json, found),
    )
    from fastquorum.spark.pipelines.choosing import could_look

    summaries = [each.summary for _, each in found]
    is_whole = could_look(summaries) and not inputs.left_out
    return 0 if is_whole and not any(each.get("errors") for each in summaries) else 1


def _write_moves(path: str | None, found: "list[tuple[str | None, Placement]]") -> None:
    """UsageError, and no plan is written, if one file would have to hold more than one cluster's."""
    if not path:
        return
    moving = [(cluster_id, each) for cluster_id, each in found if each.moves.num_rows]
    if not moving:
        print(f"{path} is not written: there is nothing to move", file=sys.stderr)
        return
    if path.endswith(_JSON):
        if len(moving) > 1:
            raise UsageError(
                f"{path} is one file, and {len(moving)} clusters have moves", "name a directory: without .json"
            )
        for _, each in moving:
            _write_plan(path, each)
        return
    with new_directory(path):
        for cluster_id, each in moving:
            _write_plan(os.path.join(path, f"{cluster_id or 'unnamed'}{_JSON}"), each)


def _write_plan(path: str, placed: "Placement") -> None:
    from fastquorum.spark.pipelines.placement.reassignment import reassignment_text

    with new_file(path) as file:
        file.writelines(reassignment_text(placed.moves))


# --- for people -------------------------------------------------------------------------------------------------------


def show(report: dict[str, Any]) -> None:
    """For people: of each table no more than the first rows."""
    if not report["clusters"]:
        print("no log here holds brokers or partitions")
    for cluster in report["clusters"]:
        if "unchecked" in cluster:
            print(f"cluster {cluster['cluster_id']} could not be checked: {cluster['unchecked']}")
        else:
            _show_cluster(cluster)
        print()


def _show_cluster(cluster: dict[str, Any]) -> None:
    now, plan, after = cluster["now"], cluster["plan"], cluster["plan"]["after"]
    states = ", ".join(f"{count} {state}" for state, count in cluster["broker_states"].items())
    print(f"cluster {cluster['cluster_id']} at offset {cluster['end_offset']}")
    if "unproven" in cluster:
        print(f"not proven: {cluster['unproven']}")
    for error in cluster["errors"]:
        print(f"not read: {error}")
    print(f"{cluster['partitions']:,} partitions, {now['replicas']:,} replicas; brokers: {states or 'none'}")
    print(
        f"{now['offline']:,} offline, {now['under_min_isr']:,} under min ISR, {now['under_replicated']:,} "
        f"under-replicated, {now['replicas_on_inactive']:,} replicas on brokers that are not active, "
        f"{now['rack_violations']:,} partitions share a rack"
    )
    rows = [
        (name.removesuffix("_per_broker"), *_shown(now[name]), *_shown(after[name]))
        for name in now
        if name.endswith("_per_broker")
    ]
    print_table(("A BROKER'S", "MIN", "MEAN", "MAX", "MIN AFTER", "MEAN AFTER", "MAX AFTER"), rows)
    _show_brokers(cluster["brokers"])
    _show_losses(cluster)
    _show_moves(cluster["moves"], plan)


def _shown(shares: dict[str, Any]) -> tuple[str, str, str]:
    return tuple("-" if shares[name] is None else f"{shares[name]:,}" for name in ("min", "mean", "max"))  # type: ignore[return-value]


def _show_brokers(brokers: list[dict[str, Any]]) -> None:
    columns = ("broker_id", "rack", "state", "replicas", "leaders", "preferred", "gains", "gives")
    most = sorted(brokers, key=lambda row: (-row["replicas"], row["broker_id"]))
    print()
    print_table(
        ("BROKER", "RACK", "STATE", "REPLICAS", "LEADERS", "PREFERRED", "GAINS", "GIVES"),
        [tuple(row[name] if row[name] is not None else "-" for name in columns) for row in most[:_SHOWN]],
    )
    _more(len(brokers), "brokers")


def _show_losses(cluster: dict[str, Any]) -> None:
    rows = [
        (
            f"{row['kind']} {row['name'] or '-'}",
            row["offline"],
            row["under_min_isr"],
            row["leaders"],
            ", ".join(f"{each['broker_id']}: {each['leaders']}" for each in row["heirs"][:3]) or "-",
            "-" if row["most_leader"] is None else f"{row['most_leader']}: {row['most_led']}",
        )
        for row in cluster["losses"]
    ]
    print("\nif it were lost (worst first):")
    print_table(("LOST", "OFFLINE", "UNDER MIN ISR", "LEADERS GO", "MOST OF THEM TO", "THEN LEADS MOST"), rows)
    for kind, worst in cluster["worst_losses"].items():
        if worst is not None and worst["would_take_offline"]:
            print(f"{worst['would_take_offline']} {kind}s would take partitions offline")


def _show_moves(moves: list[dict[str, Any]], plan: dict[str, Any]) -> None:
    reasons = ", ".join(f"{name} {count:,}" for name, count in plan["reasons"].items() if count)
    print(
        f"\nplan: {plan['partitions']:,} partitions change, {plan['moved_replicas']:,} replicas are copied, "
        f"{plan['reordered']:,} only change their order{f' ({reasons})' if reasons else ''}"
    )
    if plan["stuck"]:
        print(f"{plan['stuck']:,} partitions with a dead replica cannot be helped: no leader, or no broker to spare")
    if plan["skipped"]:
        print(f"{plan['skipped']:,} are left alone: they are being reassigned")
    if moves:
        rows = [
            (row["topic"], row["partition"], _nodes(row["replicas"]), _nodes(row["planned"]), ", ".join(row["reasons"]))
            for row in moves
        ]
        print_table(("TOPIC", "PARTITION", "FROM", "TO", "WHY"), rows)
        _more(plan["partitions"], "partitions: --reassignment-json or --out")


def _nodes(nodes: list[int]) -> str:
    return ",".join(map(str, nodes))


def _more(count: int, what: str) -> None:
    if count > _SHOWN:
        print(f"... {count - _SHOWN:,} more {what}")
