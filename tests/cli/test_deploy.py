"""`fastquorum deploy`: what it prints is what systemd, container tools and compose take."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fastquorum.cli.deploy import FILES
from fastquorum.cli.main import main


def printed(kind: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["deploy", kind]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("kind", FILES)
def test_each_begins_with_how_it_is_used(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f"fastquorum deploy {kind} > " in re.split(r"\n[^#]", printed(kind, capsys), maxsplit=1)[0]


def test_a_unit_does_not_start_again_what_needs_somebodys_eyes(capsys: pytest.CaptureFixture[str]) -> None:
    unit = printed("systemd", capsys)
    assert "\nRestart=on-failure\n" in unit
    assert "\nRestartPreventExitStatus=2 4 5\n" in unit
    assert "\nAssertPathExists=/var/lib/fastquorum/%i/meta.properties\n" in unit, "the job fails, and is seen to"
    assert "\nStartLimitIntervalSec=0\n" in unit


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_takes_the_unit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit = tmp_path / "fastquorum@n1.service"
    unit.write_text(printed("systemd", capsys).replace("/usr/local/bin/fastquorum", "/bin/true"))
    verified = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (verified.returncode, verified.stderr) == (0, "")


def test_a_node_in_a_container_finds_what_its_command_names(capsys: pytest.CaptureFixture[str]) -> None:
    # The metrics that compose asks for its health are served where the image's command says.
    image, compose = printed("container", capsys), printed("compose", capsys)
    assert '"--metrics", ":9404"' in image
    assert "http://127.0.0.1:9404/readyz" in compose
    assert '"--data", "/var/lib/fastquorum/node"' in image
    assert compose.count(":/var/lib/fastquorum") == 3
    assert "dockerfile: Containerfile}" in compose, "as its first lines name the file"
