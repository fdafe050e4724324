"""What seldom happens by chance, played on purpose: Raft's figure 8, a set of voters that a log begins with, a disk
that is replaced, and a voter's directory that is formatted anew under another directory id. A scene may break off
anywhere, and what happens by chance goes on from there.
"""

import random
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from tests.spark.verdicts.quorum import Node, Quorum, on_new_disk

Scene = Callable[[Quorum], Iterator[None]]
"""It yields wherever it may break off."""
_TRIES: Final = 20
_PART: Final = 3
"""A world of so many has a scene of SCENES, and of those that have none as many have a directory without a vote."""


def play(seed: int, quorum: Quorum) -> None:
    """One scene, as far as the seed has it, in some worlds."""
    chance = random.Random(-seed - 1)
    if not chance.randrange(_PART):
        scene = chance.choice(SCENES)
    elif not chance.randrange(_PART):
        scene = formatted_anew
    else:
        return
    steps = list(range(1, 12))
    for _ in islice(scene(quorum), chance.choice(steps)):
        pass


def _elected(quorum: Quorum, candidate: Node) -> bool:
    for _ in range(_TRIES):
        quorum.elect(candidate)
        if quorum.leader is candidate:
            return True
    return False


def _replicate_to(quorum: Quorum, nodes: list[Node], batches: int) -> None:
    for each in nodes:
        quorum.replicate(each, batches)


def _caught_up(quorum: Quorum) -> None:
    """All have what the leader has, and know that it is committed."""
    for _ in range(2):
        quorum.flush()
        _replicate_to(quorum, list(quorum.nodes.values()), 1000)


def _disk_replaced(quorum: Quorum, lost: Node) -> Node:
    """Its new directory, with another directory id. What was on the former one is still there, as it was."""
    quorum.copies.append(lost)
    del quorum.nodes[lost.id]
    new = quorum.nodes[on_new_disk(lost.id)] = Node(on_new_disk(lost.id))
    return new


def figure_8(quorum: Quorum) -> Iterator[None]:
    """A leader's record comes to a majority in a later epoch of that leader, and is cut off by one of an epoch between
    the two; or the leader brings a record of its own to a majority, and it is committed."""
    voters = [quorum.nodes[each] for each in quorum.initial]
    if len(voters) < 3 or not _elected(quorum, voters[0]):
        return
    quorum.append()
    _caught_up(quorum)
    first, second, *others = voters
    if not _elected(quorum, first):
        return
    quorum.append()
    quorum.flush()
    _replicate_to(quorum, others[: len(voters) // 2 - 1], 2)
    yield
    if not _elected(quorum, second):
        return
    quorum.flush()
    yield
    if not _elected(quorum, first):
        return
    quorum.flush()
    for each in others:
        for _ in range(2):
            quorum.replicate(each, 1)
            yield
    back = second if quorum.chance.random() < 0.7 else first
    if back is first or _elected(quorum, second):
        quorum.flush()
        for each in others:
            quorum.replicate(each, 1000)
            yield


def voters_behind_snapshot(quorum: Quorum) -> Iterator[None]:
    """A leader, and whoever else, has a snapshot of all that is committed, and nothing before; then voters change."""
    if not quorum.is_dynamic or not _elected(quorum, quorum.nodes[quorum.initial[0]]):
        return
    quorum.append()
    _caught_up(quorum)
    leader = quorum.leader
    assert leader is not None
    end = leader.end
    for each in quorum.nodes.values():
        if each.end == end == each.high_watermark and (each is leader or quorum.chance.random() < 0.5):
            quorum.snapshot_at(each, end)
            each.segments.append(end)
            each.drop_before(end, quorum.initial)
    yield
    while quorum.pending is None and len(leader.voters(quorum.initial)) > 1:
        quorum.reconfigure()
    quorum.flush()
    yield
    others = [each for each in quorum.nodes.values() if each is not leader]
    quorum.chance.shuffle(others)
    for each in others:
        quorum.append()
        quorum.flush()
        quorum.replicate(each, 1000)
        yield


def disk_replaced(quorum: Quorum) -> Iterator[None]:
    """A voter's disk is lost, and it joins anew, with another directory id. What was on the former one is still there,
    as it was some time ago."""
    if not quorum.is_dynamic or len(quorum.initial) < 3 or not _elected(quorum, quorum.nodes[1]):
        return
    quorum.append()
    _caught_up(quorum)
    leader, lost = quorum.leader, quorum.nodes[2]
    assert leader is not None
    if quorum.chance.random() < 0.5 and _elected(quorum, lost):
        quorum.append()  # and nobody else gets it
        quorum.flush()
    if not _elected(quorum, leader):
        return
    quorum.append()
    staying = [each for each in quorum.nodes.values() if each is not lost]
    for _ in range(2):
        quorum.flush()
        _replicate_to(quorum, staying, 1000)
    quorum.change_voters({each for each in leader.voters(quorum.initial) if each != lost.id})
    for _ in range(2):
        quorum.flush()
        _replicate_to(quorum, staying, 1000)
    if quorum.pending is not None or lost.id in leader.voters(quorum.initial):
        return
    new = _disk_replaced(quorum, lost)
    yield
    quorum.replicate(new, 1000)
    yield
    quorum.change_voters({*leader.voters(quorum.initial), new.id})
    quorum.flush()
    yield
    for each in quorum.nodes.values():
        quorum.append()
        quorum.replicate(each, 1000)
        yield


def formatted_anew(quorum: Quorum) -> Iterator[None]:
    """A voter's disk is lost, and its node runs on with a directory that was formatted under another directory id: it
    catches up, and has no vote. What was on the former disk is still there, as it was."""
    if not quorum.is_dynamic or len(quorum.initial) < 3 or not _elected(quorum, quorum.nodes[1]):
        return
    quorum.append()
    _caught_up(quorum)
    new = _disk_replaced(quorum, quorum.nodes[quorum.initial[-1]])
    for _ in range(3):
        quorum.append()
        quorum.flush()
        quorum.replicate(new, 1000)
        yield
        for each in quorum.initial[1 : len(quorum.initial) // 2 + 1]:  # with the leader no more than a majority
            quorum.replicate(quorum.nodes[each], 1000)
        quorum.replicate(new, 1000)
        yield
        for each in quorum.nodes.values():
            each.mark_end = each.flushed_end
        yield


SCENES: Final[tuple[Scene, ...]] = (figure_8, figure_8, voters_behind_snapshot, voters_behind_snapshot, disk_replaced)
