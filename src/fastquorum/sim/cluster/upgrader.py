"""A client that has static voters given their directories: it requests kraft.version 1 again and again, most of the
time in vain, since some voters are not in contact yet or the controller has changed. Amid the faults, the records that
raise it lie in logs for a while without being committed."""

from typing import Final

from fastquorum.sim.cluster.client import Client
from fastquorum.sim.cluster.context import ClusterContext
from fastquorum.sim.host_ids import UPGRADER
from fastquorum.sim.prng import Prng
from fastquorum.types import Micros
from fastquorum.wire import ErrorCode, Message
from fastquorum.wire.messages.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE: Final = 1


class Upgrader(Client):
    """The client that raises kraft.version."""

    def __init__(self, context: ClusterContext, prng: Prng) -> None:
        super().__init__(context.environment, UPGRADER, prng)
        self._context = context
        self.is_active = False

    def start(self) -> None:
        self.begin()
        self._plan()

    def _plan(self) -> None:
        every_us = self._context.session_us // 3
        self.later(self._prng.heavy_tail(every_us, 8 * every_us), self._act)

    def _act(self) -> None:
        self._plan()
        if not self.is_active or self.is_waiting:
            return
        validate_only = self._prng.randrange(4) == 0
        update = UpdateFeaturesRequest.FeatureUpdateKey
        request = UpdateFeaturesRequest(
            feature_updates=[update(feature="kraft.version", max_version_level=1, upgrade_type=UPGRADE)],
            validate_only=validate_only,
        )
        self.ask(request, 2, self._on_checked if validate_only else self._on_raised)
        interval_us = self._environment.swarm.config.snapshot_interval_us
        if interval_us and not validate_only:
            self._hold_commits(self._prng.between(1, 4) * interval_us)

    def _hold_commits(self, duration_us: Micros) -> None:
        """Delay the acknowledgements of what the controller appends now: meanwhile snapshots begin before an
        uncommitted record that lies behind their end."""
        network, processes = self._environment.network, self._context.processes
        leader = next((process for process in processes if process.is_leading), None)
        if leader is None:
            return
        others = [process.node_id for process in processes if process is not leader]
        for node_id in others:
            network.block(node_id, leader.node_id)

        def release() -> None:
            for node_id in others:
                network.release(node_id, leader.node_id)

        self._environment.scheduler.after(duration_us, release)

    def _on_checked(self, answer: Message | None) -> None:
        if isinstance(answer, UpdateFeaturesResponse) and answer.error_code == ErrorCode.NOT_CONTROLLER:
            self.look_elsewhere()

    def _on_raised(self, answer: Message | None) -> None:
        self._on_checked(answer)
        if isinstance(answer, UpdateFeaturesResponse) and answer.error_code == ErrorCode.NONE:
            self._context.metadata.quorum.was_raised(1)
            self._context.counts["kraft.version is raised"] = 1
