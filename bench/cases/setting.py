"""What a run has to work with: where its files may lie, how large, and whether there is a C compiler."""

from typing import NamedTuple

from fastquorum.kernels import Kernels, load


class Setting(NamedTuple):
    directory: str
    is_quick: bool = False
    has_compiler: bool = True

    @property
    def kernels(self) -> tuple[Kernels, Kernels]:
        return load("native"), load("pure")
