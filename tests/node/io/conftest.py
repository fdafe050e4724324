"""Native shells of their own for each test, and failpoints that are off again after it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .native_rig import Rig, native

Arm = Callable[..., None]


@pytest.fixture
def make_rig(tmp_path: Path) -> Iterator[Callable[..., Rig]]:
    rigs: list[Rig] = []

    def make(*, within: Path = tmp_path, **options: Any) -> Rig:
        directory = within / f"shell{len(rigs)}"
        directory.mkdir()
        rigs.append(Rig(directory, **options))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig()


@pytest.fixture
def arm(make_rig: Callable[..., Rig]) -> Iterator[Arm]:
    """`arm(name, action, amount=0, only_hit=0)`. Off before the shells end."""
    names: list[str] = []

    def arm(name: str, action: str, amount: int = 0, only_hit: int = 0) -> None:
        names.append(name)
        assert native.arm_failpoint(name, action, amount, only_hit), f"there is no {name}"

    yield arm
    for name in names:
        native.arm_failpoint(name, "off", 0, 0)
