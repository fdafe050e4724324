"""One seed, one course of events: whatever the hash seed, whatever the kernels."""

import subprocess
import sys

import pytest

from fastquorum import sim

SEEDS = (7, 11, 15)
"""Short ones: Python's kernels take their time."""
SCRIPT = f"from fastquorum import sim; print(sim.run({SEEDS[0]}).trace_hash)"


def test_a_run_can_be_repeated() -> None:
    first, second = sim.run(7), sim.run(7)
    assert first == second
    assert first.trace_hash != sim.run(8).trace_hash


def test_the_hash_seed_does_not_show() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={"PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("0", "4711")
    ]
    assert len(set(outputs)) == 1, outputs


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kernels_do_not_show(seed: int) -> None:
    pure = sim.run(seed, kernels="pure")
    assert sim.run(seed, kernels="native").trace_hash == pure.trace_hash
    assert sim.run(seed, kernels="mixed").trace_hash == pure.trace_hash


def test_a_replay_shows_the_whole_trace() -> None:
    lines: list[str] = []
    report = sim.replay(5, lines.append)
    assert report == sim.run(5)
    assert any("leader" in line for line in lines)
