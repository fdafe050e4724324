"""The verdict on a cluster: what the controllers' closed disks say, against what they had acknowledged."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fastquorum.cli.demo.cluster.ledger import Change, Created, FencedBroker, Left, Registered, words_of
from fastquorum.cli.demo.verdict import checked_log, elections_in
from fastquorum.controller.image.batches import BatchFolder
from fastquorum.controller.image.diff import differences
from fastquorum.controller.image.fold import Fold
from fastquorum.controller.image.image import EMPTY, Image
from fastquorum.errors import FastQuorumError
from fastquorum.kernels import Kernels
from fastquorum.types import NodeId, Offset


class LogWalk(NamedTuple):
    """One disk's log, batch by batch: what a reader of it has seen."""

    directory: str
    ends: list[Offset]
    """End offset of each batch, exclusive, ascending."""
    images: list[Image]
    """The image after each batch."""
    elections: int
    problems: list[str]

    @property
    def end_offset(self) -> Offset:
        return self.ends[-1] if self.ends else 0

    def at(self, offset: Offset) -> Image:
        """The image of what lies below the offset; of everything if that is less."""
        count = bisect_right(self.ends, offset)
        return self.images[count - 1] if count else EMPTY


class ClusterVerdict(NamedTuple):
    """What came of it. No problems: nothing lost, no fenced broker ever led, the images alike, and all disks sound."""

    lost: int
    """Acknowledged changes that are not on every disk."""
    elections: int
    fenced_leads: int
    """Partitions that a fenced broker led, at any offset, on any disk."""
    end_offset: Offset
    """The lowest common one; the images there are compared."""
    images_equal: bool
    partitions: int
    problems: list[str]


def judge(directories: Sequence[str], ledger: Sequence[Change], kernels: Kernels) -> ClusterVerdict:
    """Look every acknowledged change up on every disk; compare the disks. Damage is a verdict, not an error."""
    walks = [_walk(directory, kernels) for directory in directories]
    problems = [problem for walk in walks for problem in walk.problems]
    lost: set[Change] = set()
    fenced_leads = 0
    for walk in walks:
        missing = [change for change in ledger if not _holds(walk, change)]
        lost |= set(missing)
        problems += [f"{walk.directory}: {words_of(change)} was acknowledged, and is missing" for change in missing]
        led = _fenced_leads(walk)
        fenced_leads = max(fenced_leads, len(led))
        problems += [f"{walk.directory}: {words}" for words in led.values()]
        problems += [f"{walk.directory}: {words}" for words in _unasked_fencings(walk, ledger)]
    end = min(walk.end_offset for walk in walks)
    different = _differences(walks, end)
    image = walks[0].at(end)
    return ClusterVerdict(
        lost=len(lost),
        elections=max(walk.elections for walk in walks),
        fenced_leads=fenced_leads,
        end_offset=end,
        images_equal=not different,
        partitions=sum(len(topic.partitions) for topic in image.topics.sorted()),
        problems=problems + different,
    )


def _walk(directory: str, kernels: Kernels) -> LogWalk:
    walk = LogWalk(directory, [], [], 0, [])
    elections = 0
    try:
        fold, folder = Fold(), BatchFolder(kernels)
        for batch in checked_log(directory, kernels, walk.problems).batches():
            folder.take(batch.data, fold)
            walk.ends.append(fold.next_offset)
            walk.images.append(fold.image)
            elections += elections_in(batch, kernels)
    except FastQuorumError as error:
        walk.problems.append(f"{directory}: {error}")
    return walk._replace(elections=elections)


def _holds(walk: LogWalk, change: Change) -> bool:
    match change:
        case Registered():
            # The epoch is the record's own offset; a later registration takes its place.
            broker = _at_or_after(walk, change.epoch + 1).brokers.get(change.broker_id)
            return broker is not None and broker.epoch == change.epoch
        case Created():
            topic = walk.at(walk.end_offset).topics.named(change.name)
            return topic is not None and topic.id == change.id and len(topic.partitions) == change.partitions
        case FencedBroker():
            return _is_fenced_at(walk, change)
        case Left():
            return _is_fenced_at(walk, change) and _has_handed_over(walk, change)


def _is_fenced_at(walk: LogWalk, change: FencedBroker | Left) -> bool:
    broker = walk.at(change.end_offset).brokers.get(change.broker_id)
    return (
        change.end_offset <= walk.end_offset and broker is not None and broker.epoch == change.epoch and broker.fenced
    )


def _has_handed_over(walk: LogWalk, change: Left) -> bool:
    """Did it lead nothing when it was still unfenced, at last?"""
    unfenced = [image for image in walk.images if _is_unfenced(image, change.broker_id, change.epoch)]
    return bool(unfenced) and not any(
        partition.leader == change.broker_id
        for topic in unfenced[-1].topics.sorted()
        for _, partition in topic.partitions.items()
    )


def _is_unfenced(image: Image, broker_id: NodeId, epoch: int) -> bool:
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.epoch == epoch and not broker.fenced


def _at_or_after(walk: LogWalk, offset: Offset) -> Image:
    """The first image that holds everything below the offset; the empty one if none does."""
    return next((image for end, image in zip(walk.ends, walk.images, strict=True) if end >= offset), EMPTY)


def _fenced_leads(walk: LogWalk) -> dict[tuple[str, int, NodeId], str]:
    """By partition and leader: in words, and where first."""
    found: dict[tuple[str, int, NodeId], str] = {}
    for end, image in zip(walk.ends, walk.images, strict=True):
        for topic in image.topics.sorted():
            for number, partition in topic.partitions.items():
                leader = partition.leader
                if partition.has_leader and (reason := _why_not(image, leader)):
                    words = f"below offset {end} broker {leader} leads {topic.name}-{number}, and is {reason}"
                    found.setdefault((topic.name, number, leader), words)
    return found


def _why_not(image: Image, broker_id: NodeId) -> str:
    """Why the broker may not lead; empty if it may."""
    broker = image.brokers.get(broker_id)
    if broker is None:
        return "not registered"
    return "fenced" if broker.fenced else ""


def _unasked_fencings(walk: LogWalk, ledger: Sequence[Change]) -> Iterator[str]:
    """Yield fencings of brokers that lived and did not leave. A slow machine may delay one beyond its session."""
    expected = {(change.broker_id, change.epoch) for change in ledger if isinstance(change, FencedBroker | Left)}
    before = EMPTY
    for end, image in zip(walk.ends, walk.images, strict=True):
        for broker in image.brokers.values():
            former = before.brokers.get(broker.id)
            is_new = former is not None and former.epoch == broker.epoch and broker.fenced and not former.fenced
            if is_new and (broker.id, broker.epoch) not in expected:
                yield f"below offset {end} broker {broker.id} is fenced, and was neither killed nor asked to leave"
        before = image


def _differences(walks: Sequence[LogWalk], end: Offset) -> list[str]:
    first = walks[0].at(end)
    found = []
    for walk in walks[1:]:
        image = walk.at(end)
        if image != first:
            words = next((each.words for each in differences(first, image)), "they are not equal")
            found.append(f"the images at offset {end} of {walks[0].directory} and {walk.directory} differ: {words}")
    return found
