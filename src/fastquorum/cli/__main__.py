"""The command's entry point, installed as a script or as `python -m fastquorum.cli`."""

import gc
import sys


def main() -> int:
    """Run the command line; its exit code. Ctrl-C is quiet from here on, imports included, and a node ignores what
    has no meaning to it."""
    gc.disable()  # until the command begins: what is imported is kept, and looks through it take a fifth of the start
    try:
        from fastquorum.cli.terminal import file_limit, interrupts

        is_node = sys.argv[1:2] == ["run"]
        interrupts.end_at_once(also_by_quit=is_node)
        if is_node:
            interrupts.ignore_meaningless()
    except KeyboardInterrupt:
        return 130  # interrupts.EXIT_INTERRUPTED, which may not be there yet
    if not file_limit.is_enough_to_start():
        print(
            f"fastquorum: this process may have too few files open at once, {file_limit.FILES_MIN} is the least; "
            "raise the limit (ulimit -n 1024)",
            file=sys.stderr,
        )
        return 1
    from fastquorum.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
