"""CRC-32C of 64 B to 16 MB, against the fastest packages and against one stream of the CPU's instruction."""

import ctypes
import random
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from bench import floors
from bench.cases.setting import Setting
from bench.measure import GB_PER_S, Case, Contender, Goal, Role, python
from bench.peers import module

SIZES = {"64 B": 64, "1 KB": 1 << 10, "64 KB": 1 << 16, "16 MB": 1 << 24}


def cases(setting: Setting) -> Iterator[Case]:
    peers = _peers()
    for name, size in SIZES.items():
        data = random.Random(size).randbytes(size)
        contenders = [
            python(kernels.NAME, Role(kernels.NAME), "crc32c(data)", crc32c=kernels.crc32c, data=data)
            for kernels in setting.kernels
        ]
        contenders += [
            python(peer, Role.PEER, "crc32c(data)", crc32c=crc32c, data=data) for peer, crc32c in peers.items()
        ]
        if setting.has_compiler:
            contenders.append(_floor(data))
        # The pure kernels' checksum is the crc32c package itself.
        goals = [Goal(against=tuple(peers), at_least=0.9)] if peers else []
        yield Case("CRC-32C", name, GB_PER_S, contenders, goals, amount=size)


def _peers() -> dict[str, Any]:
    found = {name: module(name.replace("-", "_")) for name in ("crc32c", "fastcrc", "google-crc32c")}
    functions = {"crc32c": "crc32c", "fastcrc": "crc32.iscsi", "google-crc32c": "value"}
    return {name: attrgetter(functions[name])(package) for name, package in found.items() if package is not None}


def _floor(data: bytes) -> Contender:
    lib = floors.library()
    buffer = ctypes.create_string_buffer(data, len(data))
    return Contender(
        "C, one stream",
        Role.FLOOR,
        lambda repeat: lib.floor_crc32c_ns(buffer, len(data), repeat),
        lambda: lib.floor_crc32c(buffer, len(data)),
    )
