"""The native kernel set: Cython over C++, compiled from `ext/`. See `fastquorum.kernels.Kernels` for every contract."""

from fastquorum.kernels.native._crc32c import cpu_path, cpu_paths, crc32c, force_cpu_path

NAME = "native"

__all__ = ["NAME", "cpu_path", "cpu_paths", "crc32c", "force_cpu_path"]
