"""The peers, fetched once from their own registries into a cache: Go modules, jars of Maven Central, PyPI packages.

Everything appears in the cache whole or not at all, under a name made of what it was built from; two runs at a time
wait for each other. What cannot be had raises `Missing`, which says why and what to install.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

PROGRAMS: Final = Path(__file__).parent / "programs"
GO_VERSION: Final = "1.26.8"
GO_SHA256: Final = {
    "amd64": "30c2b1bf7dcc88d3eb0a1364e47ddd9128edb3110a30e8a0ef61cd5856b31de7",
    "arm64": "02b36b6787b3ac767668f630e2998df45a3b1f9ffee08d1bf3ef6487cd658d99",
}
"""SHA-256 of the toolchain's zip on the Go module proxy."""
GO_PROXY: Final = "https://proxy.golang.org"
MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
PACKAGES: Final = ("kazoo==2.11.0", "pysyncobj==0.3.17")


class Missing(Exception):
    """A peer cannot be had here; the message says why and what to install."""


def cache() -> Path:
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "fastquorum" / "peers"


def go_program(name: str) -> Path:
    """`programs/go/NAME`, built; its modules and checksums are pinned by go.mod and go.sum."""
    folder = PROGRAMS / "go"
    result = f"go-{name}-{_digest([*(folder / 'load').iterdir(), *(folder / name).iterdir()])}"
    if (cache() / result).exists():
        return cache() / result / name
    go = _go()

    def build(partial: Path) -> None:
        partial.mkdir()
        environment = {"GOTOOLCHAIN": "auto", "GOFLAGS": "-mod=readonly -buildvcs=false", "CGO_ENABLED": "0"}
        _tell(f"building {name} and fetching its modules (minutes, once)")
        command = [str(go), "build", "-trimpath", "-o", str(partial / name), "."]
        _run(command, f"go could not build {name}", cwd=folder / name, environment=environment)

    return _cached(result, build) / name


def _go() -> Path:
    """A Go that fetches newer toolchains by itself (1.21 and later), else one from the module proxy."""
    found = shutil.which("go")
    if found is not None:
        printed = subprocess.run([found, "env", "GOVERSION"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"go1\.(\d+)", printed)
        if version is not None and int(version[1]) >= 21:
            return Path(found)
    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise Missing(f"no Go toolchain is known for {platform.machine()}; install Go 1.21 or later")
    return _cached(f"toolchain-go{GO_VERSION}", lambda partial: _toolchain(machine, partial)) / "bin" / "go"


def _toolchain(machine: str, partial: Path) -> None:
    name = f"v0.0.1-go{GO_VERSION}.linux-{machine}"
    archive = partial.with_suffix(".zip")
    _tell(f"fetching Go {GO_VERSION} (70 MB, once)")
    download(f"{GO_PROXY}/golang.org/toolchain/@v/{name}.zip", archive, GO_SHA256[machine])
    top = f"golang.org/toolchain@{name}/"
    with zipfile.ZipFile(archive) as packed:
        for member in packed.infolist():
            target = partial / member.filename.removeprefix(top)
            if not member.filename.startswith(top) or ".." in target.parts:
                raise Missing(f"the toolchain's archive holds {member.filename!r}, outside of {top}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with packed.open(member) as source, target.open("wb") as out:
                shutil.copyfileobj(source, out)
    archive.unlink()
    for folder in (partial / "bin", partial / "pkg" / "tool"):  # a module's archive keeps no modes
        for path in folder.rglob("*"):
            path.chmod(path.stat().st_mode | stat.S_IXUSR)


def download(url: str, target: Path, sha256: str) -> None:
    """Raises Missing: out of reach, or not the bytes that were expected."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except OSError as error:
        raise Missing(f"{url} cannot be fetched: {error}") from None
    with target.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        target.unlink()
        raise Missing(f"{url} has the checksum {found}, not {sha256}")


def jars(name: str) -> Path:
    """The directory that holds the jars of `programs/java/NAME.xml`."""
    pom = PROGRAMS / "java" / f"{name}.xml"

    def fetch(partial: Path) -> None:
        _need("mvn", "maven")
        _tell(f"fetching the jars of {name} (once)")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
        command = ["mvn", "--batch-mode", "--quiet", "--file", str(pom), *goal]
        _run(command, f"maven could not fetch the jars of {name}")

    _need("java", "default-jdk-headless")
    return _cached(f"jars-{name}-{_digest([pom])}", fetch)


def java_program(name: str, lib: Path) -> Path:
    """The directory that holds the classes of `programs/java/NAME.java`."""
    sources = [PROGRAMS / "java" / f"{each}.java" for each in ("Load", name)]

    def build(partial: Path) -> None:
        _need("javac", "default-jdk-headless")
        command = ["javac", "-d", str(partial), "-cp", f"{lib}/*", *map(str, sources)]
        _run(command, f"javac could not compile {name}")

    return _cached(f"classes-{name}-{_digest(sources)}-{lib.name}", build)


def python() -> Path:
    """An interpreter that has the peers' packages, in an environment of its own."""
    digest = hashlib.sha256(" ".join((*PACKAGES, sys.version)).encode()).hexdigest()[:8]

    def build(partial: Path) -> None:
        _tell(f"installing {', '.join(PACKAGES)} (once)")
        _run(
            [sys.executable, "-m", "venv", str(partial)],
            "no environment could be made (Debian: apt install python3-venv)",
        )
        _run([str(partial / "bin/python"), "-m", "pip", "install", "--quiet", *PACKAGES], "pip could not install them")

    return _cached(f"python-{digest}", build) / "bin/python"


def _cached(name: str, build: Callable[[Path], None]) -> Path:
    target = cache() / name
    if target.exists():
        return target
    try:
        cache().mkdir(parents=True, exist_ok=True)
        with (cache() / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                partial = target.with_name(f"{name}.partial")
                shutil.rmtree(partial, ignore_errors=True)
                build(partial)
                partial.rename(target)
    except OSError as error:
        raise Missing(f"{cache()} cannot be written: {error}") from None
    return target


def _run(command: list[str], what: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()] or ["no message"]
        raise Missing(f"{what}: {lines[-1] if command[0].endswith('go') else lines[0]}"[:300])


def _need(program: str, package: str) -> None:
    if shutil.which(program) is None:
        raise Missing(f"no {program}; Debian, Ubuntu: apt install {package}")


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256(platform.machine().encode())
    for path in sorted(paths):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:8]


def _tell(what: str) -> None:
    print(f"{what} ...", file=sys.stderr, flush=True)
