"""Generates metadata logs of clusters of any size by the real controller in simulated time, with planted faults and a
list of them: input with known answers for queries of logs.

It owns the events of a generated cluster and the damage to its files. It must not know the readers of the files, and
has no random numbers or clock of its own: the seed and the options decide every byte. Source: KIP-631 (records),
KIP-630 (snapshots), KIP-595 (epochs).
"""

from fastquorum.generate.kinds import FINDERS, Kind
from fastquorum.generate.options import START_MS, GenerateOptions, Span, parse_faults, parse_span
from fastquorum.generate.running import LIST, generate, whole_clusters

__all__ = [
    "FINDERS",
    "LIST",
    "START_MS",
    "GenerateOptions",
    "Kind",
    "Span",
    "generate",
    "parse_faults",
    "parse_span",
    "whole_clusters",
]
