"""What a user sees when the machine cannot build: the first message names the package to install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")

# scikit-build-core fetches CMake for a build if the machine has none, and takes it away again.
needs_cmake = pytest.mark.skipif(
    CMAKE is None, reason="no cmake on this machine: pip brought its own for the build only"
)


def configure(build: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    assert CMAKE is not None
    make = shutil.which("make") or "/usr/bin/true"  # nothing is built
    generator = ("-G", "Unix Makefiles", f"-DCMAKE_MAKE_PROGRAM={make}", f"-DPython_EXECUTABLE={sys.executable}")
    return subprocess.run(
        [CMAKE, "-S", str(ROOT), "-B", str(build), *generator, *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A PATH with make, and nothing else."""
    directory = tmp_path / "tools"
    directory.mkdir()
    (directory / "make").symlink_to(shutil.which("make") or "/usr/bin/true")
    return str(directory)


@pytest.mark.parametrize("cxx", ["/nonexistent/c++", None], ids=["CXX names none", "PATH holds none"])
def test_without_a_compiler_the_message_names_the_packages(tmp_path: Path, tools: str, cxx: str | None) -> None:
    environment = {"PATH": tools} if cxx is None else {"PATH": tools, "CXX": cxx}
    done = configure(tmp_path / "build", **environment)
    assert done.returncode != 0
    assert "needs a C++20 compiler, and none was found" in done.stderr
    assert "apt-get install g++ python3-dev" in done.stderr
    assert "dnf install gcc-c++ python3-devel" in done.stderr


def test_an_unknown_build_kind_is_refused_by_name(tmp_path: Path) -> None:
    done = configure(tmp_path / "build", "-DFASTQUORUM_BUILD_KIND=debug")
    assert done.returncode != 0
    assert "FASTQUORUM_BUILD_KIND is 'debug', not one of: release;checked;tsan;profile" in done.stderr


def test_a_free_threaded_python_is_refused_in_words(tmp_path: Path) -> None:
    # The default build, which says of itself what a free-threaded one says.
    (tmp_path / "sitecustomize.py").write_text(
        "import sysconfig\n"
        "config_var = sysconfig.get_config_var\n"
        "sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else config_var(name)\n"
    )
    done = configure(tmp_path / "build", PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "is a free-threaded Python, where fastquorum does not run" in " ".join(done.stderr.split())


def test_directives_and_flags_live_in_cmake_alone() -> None:
    # A header comment beats the command line: the checked build would lose its checks without a word.
    sources = sorted((ROOT / "ext").glob("*.p[xy][dx]"))
    assert len(sources) > 15
    for source in sources:
        text = source.read_text()
        assert "# cython:" not in text, source
        assert "# distutils:" not in text, source
