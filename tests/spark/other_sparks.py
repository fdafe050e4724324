"""Other versions of Spark, each in a virtual environment of its own: this one's packages, behind another PySpark.

Packages come from where pip is set up to find them, jars from where Maven is.
"""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Final

INSTALL_S: Final = 1800.0
"""Half a gigabyte, on a loaded machine."""
_HERE: Final = "here.pth"
_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>fastquorum</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>
  </dependencies>
</project>
"""


def made(directory: Path, packages: Sequence[str]) -> str:
    """The Python of an environment with these packages, and whatever else this one has; made, unless it is there."""
    python = directory / "bin" / "python"
    packages_of = sysconfig.get_path("purelib", vars={"base": str(directory), "platbase": str(directory)})
    here = Path(packages_of) / _HERE
    if not here.exists():
        _run(sys.executable, "-m", "venv", "--without-pip", "--clear", str(directory))
        _run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", *packages)
        # Last: pip must not take this environment's packages for that one's.
        here.write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    return str(python)


def jars_of(package: str, directory: Path) -> list[str]:
    """The jars of GROUP:ARTIFACT:VERSION and of all that it needs at run time; fetched, unless they are there. (Spark's
    own resolver takes a package of which Maven's local repository has but the description for one that is there.)"""
    if not directory.exists():
        made_in = directory.with_name(f"{directory.name}.new")
        made_in.mkdir(parents=True, exist_ok=True)
        pom = made_in / "pom.xml"
        pom.write_text(_POM.format(*package.split(":")))
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={made_in}")
        _run("mvn", "--batch-mode", "--quiet", "--file", str(pom), *goal)
        made_in.rename(directory)
    return sorted(map(str, directory.glob("*.jar")))


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
