"""Metadata logs as clusters of any size would leave them, made by the real controller in simulated time, with faults
planted on request and a list of them: input for whoever asks questions of logs, and knows the answers.

Owns what happens in a made-up cluster and what is done to its files. Must not know who reads them, and has no chance
and no clock of its own: the seed and the options decide every byte. Source: KIP-631 (records), KIP-630 (snapshots),
KIP-595 (epochs).
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
