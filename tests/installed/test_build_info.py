"""build_info(): what is installed, as far as it can be checked from outside."""

import platform
import subprocess
import sys
from importlib.metadata import version

import fastquorum
from fastquorum.kernels import load


def test_it_names_version_kernels_and_cpu_path() -> None:
    info = fastquorum.build_info()
    assert info.version == version("fastquorum") == fastquorum.__version__
    assert info.kernels == ("native", "pure")
    assert info.native_error == ""
    assert info.cpu_path == load("native").cpu_path()
    assert info.cpu_path in info.cpu_paths
    assert info.cpu_paths[-1] == "portable"


def test_it_names_what_the_native_kernels_were_built_with() -> None:
    info = fastquorum.build_info()
    assert info.build_kind in ("release", "checked", "tsan", "profile")
    assert info.compiler.split()[0] in ("GNU", "Clang")
    assert "-O" in info.compiler_flags
    assert "-march" not in info.compiler_flags, "one wheel must run everywhere"
    assert "boundscheck=" in info.cython_directives
    assert info.cython.startswith("3.")


def test_it_names_the_libraries() -> None:
    info = fastquorum.build_info()
    assert info.numpy == version("numpy")
    assert info.py_lmdb == version("lmdb")
    assert info.lmdb.startswith("0.9.") or info.lmdb.startswith("1.")
    assert platform.python_version() in info.python
    assert platform.machine() in info.machine


WITHOUT_NATIVE = """
import sys
sys.modules["fastquorum.kernels.native"] = None
import fastquorum
info = fastquorum.build_info()
assert info.kernels == ("pure",), info
assert "fastquorum.kernels.native" in info.native_error, info
assert info.cpu_path == info.build_kind == info.compiler == "", info
try:
    fastquorum.kernels.load("native")
except ImportError as error:
    assert "apt-get install g++ python3-dev" in str(error), error
else:
    sys.exit("the native kernels were loaded")
"""


def test_missing_native_kernels_are_reported_and_never_replaced_in_silence() -> None:
    subprocess.run([sys.executable, "-c", f"import fastquorum.kernels\n{WITHOUT_NATIVE}"], check=True)
