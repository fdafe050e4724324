"""A file of batches folded into an image, by a process that has done nothing before: what it keeps is the image alone,
and nothing that was freed before hides some of it.

usage: python -m bench.figures.folding FILE        (prints JSON: records_per_s, kept_bytes)
"""

import gc
import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from fastquorum.controller.image import Image
from fastquorum.controller.image.counts import PartitionCounts
from fastquorum.controller.image.fold import Fold
from fastquorum.kernels import Kernels, load
from fastquorum.node.metadata.folding import MetadataFolder

ROOT: Final = Path(__file__).parents[2]
PAGE_BYTES: Final = 4_096


def fold(kernels: Kernels, batches: list[bytes]) -> tuple[float, Image]:
    """Records a second, as a starting node reads its log, some batches a turn (`Replay`); and the image."""
    taken = Fold(counts=PartitionCounts(), make=kernels.untracked)
    folder = MetadataFolder(kernels)
    began = perf_counter()
    for batch in batches:
        folder.take(batch, taken)
        image = taken.image
    return taken.next_offset / (perf_counter() - began), image


def folded_by_itself(path: Path) -> dict[str, Any]:
    """What a process of its own found."""
    command = [sys.executable, "-m", "bench.figures.folding", str(path)]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE_BYTES


def main() -> None:
    kernels = load("native")
    data = Path(sys.argv[1]).read_bytes()
    batches = [
        data[info.position : info.position + info.size_bytes] for info in kernels.batch_headers(data, verify_crc=False)
    ]
    gc.collect()
    before = _resident_bytes()
    rate, image = fold(kernels, batches)
    gc.collect()
    print(json.dumps({"records_per_s": rate, "kept_bytes": _resident_bytes() - before}))
    del image


if __name__ == "__main__":
    main()
