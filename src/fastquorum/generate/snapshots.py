"""The times of a cluster's snapshots, with the gaps and the wrong one.

They are taken at equal distances, the last one interval before the end. The log before the first sixth of them is
removed at the end, as retention would do.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from fastquorum.config import SECOND
from fastquorum.controller.image import Image
from fastquorum.controller.image.partition import partition_record
from fastquorum.generate.calendar import HOUR
from fastquorum.generate.instant_controller import KRAFT_VERSION
from fastquorum.generate.kinds import Kind
from fastquorum.generate.life import OrdinaryLife
from fastquorum.generate.options import FAULTS_FROM
from fastquorum.generate.planted import Planted, begun
from fastquorum.types import OffsetAndEpoch

COUNT: Final = 24
COUNT_LARGE: Final = 12
LARGE_PARTITIONS: Final = 20_000
GAP: Final = 4
"""Snapshots that are missing in a gap: it is five times as long as the others."""


class PlannedSnapshots:
    """The snapshots of one cluster."""

    def __init__(self, life: OrdinaryLife, hours: int, kinds: Sequence[Kind]) -> None:
        """Plan all snapshots in the calendar."""
        self._life = life
        self.taken: Final[list[OffsetAndEpoch]] = []
        self.planted: Final[list[Planted]] = []
        self._count = COUNT if life.topics.partition_count <= LARGE_PARTITIONS else COUNT_LARGE
        earliest = int(self._count * FAULTS_FROM)
        self._gap_after = self._count + 1
        if Kind.SNAPSHOT_GAP in kinds:
            self._gap_after = life.prng.between(earliest, self._count - GAP - 3)
        self._wrong = 0
        if Kind.SNAPSHOT_DIFFERS in kinds:
            self._wrong = life.prng.between(earliest, min(self._gap_after, self._count - 3))
        for number in range(1, self._count):
            at_us = number * hours * HOUR // self._count + life.prng.randrange(20 * SECOND)
            if not self._gap_after < number <= self._gap_after + GAP:
                life.calendar.at(at_us, partial(self._take, number))

    @property
    def keep_from(self) -> OffsetAndEpoch:
        """The earliest snapshot that is kept."""
        return self.taken[self._count // 6 - 1]

    def _take(self, number: int) -> None:
        controller, image = self._life.controller, self._life.controller.image
        if number == self._gap_after + GAP + 1:
            self.planted[-1].end_ms, self.planted[-1].end_offset = controller.now_ms, controller.end_offset
        if number == self._wrong:
            image = self._without_a_member(image)
        self.taken.append(controller.writer.snapshot(image, KRAFT_VERSION, controller.voters, controller.now_ms))
        if number == self._gap_after:
            self.planted.append(begun(controller, Kind.SNAPSHOT_GAP))

    def _without_a_member(self, image: Image) -> Image:
        """Return the image with one ISR shorter than in the log."""
        life = self._life
        while True:
            key = life.topics.pick(life.controller, life.prng)
            partition = life.sim_brokers.partition(key)
            if len(partition.isr) > 1:
                break
        planted = begun(life.controller, Kind.SNAPSHOT_DIFFERS, key)
        planted.end_offset = planted.offset
        planted.broker = follower = next(each for each in reversed(partition.isr) if each != partition.leader)
        shorter = partition._replace(isr=tuple(each for each in partition.isr if each != follower))
        self.planted.insert(0, planted)
        level, with_elr = life.controller.state.level, image.features.is_elr_enabled
        return image.apply([partition_record(key.topic_id, key.partition_id, shorter, level, with_elr=with_elr)])
