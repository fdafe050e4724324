"""Versions, usable kernels, and how the native ones were built, for `doctor` and bug reports.

Reports only: a missing native kernel set is an error where it is needed.
"""

import importlib
from types import ModuleType
from typing import NamedTuple


class BuildInfo(NamedTuple):
    """Empty text = not known, because the native kernels cannot be loaded."""

    version: str
    python: str
    machine: str
    kernels: tuple[str, ...]
    """The kernel sets that load here: "native", "pure"."""
    native_error: str
    """Why the native kernels do not load; empty if they do."""
    cpu_path: str
    """Which path of the native CRC-32C this CPU runs."""
    cpu_paths: tuple[str, ...]
    """All paths it could run, best first."""
    build_kind: str
    """release, checked, tsan or profile."""
    compiler: str
    compiler_flags: str
    cython: str
    cython_directives: str
    numpy: str
    lmdb: str
    """Version of LMDB itself."""
    py_lmdb: str
    """Version of its Python package."""
    crc32c: str
    cramjam: str


def build_info() -> BuildInfo:
    """Describe this installation. Loads the native kernels, never raises because they are missing."""
    # Slow to import, and `import fastquorum` must not pay for it.
    import platform
    from importlib.metadata import version

    native: ModuleType | None = None
    build: ModuleType | None = None
    native_error = ""
    try:
        native = importlib.import_module("fastquorum.kernels.native")
        build = importlib.import_module("fastquorum.kernels.native._build")
    except ImportError as error:
        native_error = str(error)
    return BuildInfo(
        version=version("fastquorum"),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        machine=f"{platform.system()} {platform.machine()}",
        kernels=("pure",) if native is None else ("native", "pure"),
        native_error=native_error,
        cpu_path="" if native is None else native.cpu_path(),
        cpu_paths=() if native is None else native.cpu_paths(),
        build_kind="" if build is None else build.BUILD_KIND,
        compiler="" if build is None else build.COMPILER,
        compiler_flags="" if build is None else build.FLAGS,
        cython="" if build is None else build.CYTHON,
        cython_directives="" if build is None else build.CYTHON_DIRECTIVES,
        numpy=version("numpy"),
        lmdb=_lmdb_version(),
        py_lmdb=version("lmdb"),
        crc32c=version("crc32c"),
        cramjam=version("cramjam"),
    )


def _lmdb_version() -> str:
    major, minor, patch = importlib.import_module("lmdb").version()
    return f"{major}.{minor}.{patch}"
