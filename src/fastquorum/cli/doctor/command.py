"""`fastquorum doctor`: what is installed, how fast this disk syncs, what is wrong and what to do about it."""

import argparse
from typing import Any

from fastquorum import build_info
from fastquorum.cli.doctor import machine
from fastquorum.cli.terminal.arguments import add_format, explain
from fastquorum.cli.terminal.output import print_json, print_table


def configure(parser: argparse.ArgumentParser) -> None:
    explain(
        parser,
        "Show what is installed here, which kernels and CPU path run, on what file system the data is, how fast it "
        "syncs, and what is wrong. Writes a small file and removes it.\n"
        "Exits 1 if something is wrong.",
        "fastquorum doctor --data /var/lib/fastquorum",
        "fastquorum doctor --spark",
    )
    parser.add_argument("--data", metavar="DIR", default=".", help="where the data is, or will be (default: here)")
    parser.add_argument(
        "--spark", action="store_true", help="check what Spark runs with instead, and try a small session"
    )
    add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.spark:
        return _run_spark(arguments)
    facts, problems = _diagnose(arguments.data)
    _print(arguments, facts, problems)
    return 1 if problems else 0


def _run_spark(arguments: argparse.Namespace) -> int:
    from fastquorum.cli.doctor import spark as doctor_spark

    facts, problems = doctor_spark.diagnose()
    if arguments.format != "json" and not doctor_spark.is_installed():
        _complain(problems)
    else:
        _print(arguments, facts, problems)
    return 1 if problems else 0


def _diagnose(data: str) -> tuple[dict[str, Any], list[machine.Problem]]:
    facts: dict[str, Any] = {}
    problems: list[machine.Problem] = []
    build = build_info()
    facts |= build._asdict()
    if build.native_error:
        problems.append(
            machine.Problem(
                f"the native kernels do not load: {build.native_error}",
                "install fastquorum again with a C++ compiler present (Debian: apt-get install g++ python3-dev)",
            )
        )
    elif build.cpu_path == "portable":
        problems.append(machine.Problem("this CPU has no CRC-32C instructions", "expect slow checksums"))
    if build.build_kind and build.build_kind != "release":
        problems.append(
            machine.Problem(f"this is a {build.build_kind} build", "install without FASTQUORUM_BUILD_KIND for speed")
        )
    for look in (machine.clock, machine.limits):
        found, wrong = look()
        facts |= found
        problems += wrong
    found, wrong = machine.data_directory(data, "pure" if build.native_error else "native")
    facts |= found
    problems += wrong
    return facts, problems


def _print(arguments: argparse.Namespace, facts: dict[str, Any], problems: list[machine.Problem]) -> None:
    if arguments.format == "json":
        print_json({**facts, "problems": [each._asdict() for each in problems]})
        return
    rows = [(name, ", ".join(value) if isinstance(value, tuple) else value) for name, value in facts.items()]
    print_table(("DOCTOR", ""), [row for row in rows if row[1] not in ("", None)])
    print()
    _complain(problems)
    print(f"wrong: {len(problems)}" if problems else "nothing is wrong")


def _complain(problems: list[machine.Problem]) -> None:
    for each in problems:
        print(f"WRONG: {each.text}; {each.hint}")
