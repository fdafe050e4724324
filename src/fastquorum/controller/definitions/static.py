"""The configurations of a Kafka node that cannot change while it runs: names, types and defaults.

Source: Kafka 4.3 `AbstractKafkaConfig`.
"""

from typing import Final

from fastquorum.controller.definitions.definition import defined

STATIC_CONFIGS: Final = defined(
    """
INT add.partitions.to.txn.retry.backoff.max.ms=100
INT add.partitions.to.txn.retry.backoff.ms=20
LIST advertised.listeners
CLASS alter.config.policy.class.name
INT alter.log.dirs.replication.quota.window.num=11
INT alter.log.dirs.replication.quota.window.size.seconds=1
STRING authorizer.class.name=
BOOLEAN auto.create.topics.enable=true
BOOLEAN auto.leader.rebalance.enable=true
INT broker.heartbeat.interval.ms=2000
INT broker.id=-1
STRING broker.rack
INT broker.session.timeout.ms=9000
CLASS client.quota.callback.class
INT connection.failed.authentication.delay.ms=100
LONG connections.max.idle.ms=600000
LONG connections.max.reauth.ms=0
BOOLEAN controlled.shutdown.enable=true
LIST controller.listener.names
INT controller.quorum.append.linger.ms=25
BOOLEAN controller.quorum.auto.join.enable=false
LIST controller.quorum.bootstrap.servers=
INT controller.quorum.election.backoff.max.ms=1000
INT controller.quorum.election.timeout.ms=1000
INT controller.quorum.fetch.max.bytes=1048576
INT controller.quorum.fetch.snapshot.max.bytes=1048576
INT controller.quorum.fetch.timeout.ms=2000
INT controller.quorum.request.timeout.ms=2000
INT controller.quorum.retry.backoff.ms=20
LIST controller.quorum.voters=
INT controller.quota.window.num=11
INT controller.quota.window.size.seconds=1
INT controller.socket.timeout.ms=30000
CLASS create.topic.policy.class.name
INT default.replication.factor=1
LONG delegation.token.expiry.check.interval.ms=3600000
LONG delegation.token.expiry.time.ms=86400000
LONG delegation.token.max.lifetime.ms=604800000
PASSWORD delegation.token.secret.key
INT delete.records.purgatory.purge.interval.requests=1
BOOLEAN delete.topic.enable=true
LIST early.start.listeners
INT fetch.max.bytes=57671680
INT fetch.purgatory.purge.interval.requests=1000
LIST group.consumer.assignors=uniform,range
INT group.consumer.heartbeat.interval.ms=5000
INT group.consumer.max.assignment.interval.ms=15000
INT group.consumer.max.heartbeat.interval.ms=15000
INT group.consumer.max.session.timeout.ms=60000
INT group.consumer.max.size=2147483647
STRING group.consumer.migration.policy=bidirectional
INT group.consumer.min.assignment.interval.ms=0
INT group.consumer.min.heartbeat.interval.ms=5000
INT group.consumer.min.session.timeout.ms=45000
INT group.consumer.session.timeout.ms=45000
INT group.coordinator.append.linger.ms=-1
INT group.coordinator.background.threads=2
LIST group.coordinator.rebalance.protocols=classic,consumer,streams
INT group.coordinator.threads=4
INT group.initial.rebalance.delay.ms=3000
INT group.max.session.timeout.ms=1800000
INT group.max.size=2147483647
INT group.min.session.timeout.ms=6000
LIST group.share.assignors=simple
INT group.share.delivery.count.limit=5
INT group.share.heartbeat.interval.ms=5000
INT group.share.max.assignment.interval.ms=15000
INT group.share.max.delivery.count.limit=10
INT group.share.max.heartbeat.interval.ms=15000
INT group.share.max.partition.max.record.locks=4000
INT group.share.max.record.lock.duration.ms=60000
INT group.share.max.session.timeout.ms=60000
INT group.share.max.share.sessions=2000
INT group.share.max.size=200
INT group.share.min.assignment.interval.ms=0
INT group.share.min.delivery.count.limit=2
INT group.share.min.heartbeat.interval.ms=5000
INT group.share.min.partition.max.record.locks=100
INT group.share.min.record.lock.duration.ms=15000
INT group.share.min.session.timeout.ms=45000
INT group.share.partition.max.record.locks=2000
INT group.share.record.lock.duration.ms=30000
INT group.share.session.timeout.ms=45000
INT group.streams.heartbeat.interval.ms=5000
INT group.streams.initial.rebalance.delay.ms=3000
INT group.streams.max.assignment.interval.ms=15000
INT group.streams.max.heartbeat.interval.ms=15000
INT group.streams.max.session.timeout.ms=60000
INT group.streams.max.size=2147483647
INT group.streams.max.standby.replicas=2
INT group.streams.min.assignment.interval.ms=0
INT group.streams.min.heartbeat.interval.ms=5000
INT group.streams.min.session.timeout.ms=45000
INT group.streams.num.standby.replicas=0
INT group.streams.session.timeout.ms=45000
INT initial.broker.registration.timeout.ms=60000
STRING inter.broker.listener.name
INT kafka.metrics.polling.interval.secs=10
LIST kafka.metrics.reporters=
LONG leader.imbalance.check.interval.seconds=300
BOOLEAN log.cleaner.enable=true
LIST log.dir=/tmp/kafka-logs
LONG log.dir.failure.timeout.ms=30000
LIST log.dirs
INT log.flush.offset.checkpoint.interval.ms=60000
LONG log.flush.scheduler.interval.ms=9223372036854775807
INT log.flush.start.offset.checkpoint.interval.ms=60000
LONG log.retention.check.interval.ms=300000
INT log.retention.hours=168
INT log.retention.minutes
INT log.roll.hours=168
INT log.roll.jitter.hours=0
INT max.incremental.fetch.session.cache.slots=1000
INT max.request.partition.size.limit=2000
STRING metadata.log.dir
LONG metadata.log.max.record.bytes.between.snapshots=20971520
LONG metadata.log.max.snapshot.interval.ms=3600000
INT metadata.log.segment.bytes=1073741824
LONG metadata.log.segment.ms=604800000
INT metadata.max.idle.interval.ms=500
LONG metadata.max.retention.bytes=104857600
LONG metadata.max.retention.ms=604800000
INT metrics.num.samples=2
STRING metrics.recording.level=INFO
LONG metrics.sample.window.ms=30000
INT node.id
INT num.partitions=1
INT num.replica.alter.log.dirs.threads
INT offset.metadata.max.bytes=4096
INT offsets.commit.timeout.ms=5000
INT offsets.load.buffer.size=5242880
LONG offsets.retention.check.interval.ms=600000
INT offsets.retention.minutes=10080
INT offsets.topic.compression.codec=0
INT offsets.topic.num.partitions=50
SHORT offsets.topic.replication.factor=3
INT offsets.topic.segment.bytes=104857600
LIST process.roles
INT producer.purgatory.purge.interval.requests=1000
LONG queued.max.request.bytes=-1
INT queued.max.requests=500
INT quota.window.num=11
INT quota.window.size.seconds=1
INT remote.log.manager.copy.quota.window.num=11
INT remote.log.manager.copy.quota.window.size.seconds=1
INT remote.log.manager.fetch.quota.window.num=11
INT remote.log.manager.fetch.quota.window.size.seconds=1
LONG remote.log.manager.task.interval.ms=30000
INT remote.log.manager.thread.pool.size=2
INT remote.log.metadata.custom.metadata.max.bytes=128
STRING remote.log.metadata.manager.class.name=\
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager
STRING remote.log.metadata.manager.class.path
STRING remote.log.metadata.manager.impl.prefix=rlmm.config.
STRING remote.log.metadata.manager.listener.name
INT remote.log.reader.max.pending.tasks=100
STRING remote.log.storage.manager.class.name
STRING remote.log.storage.manager.class.path
STRING remote.log.storage.manager.impl.prefix=rsm.config.
BOOLEAN remote.log.storage.system.enable=false
INT replica.fetch.backoff.ms=1000
INT replica.fetch.max.bytes=1048576
INT replica.fetch.min.bytes=1
INT replica.fetch.response.max.bytes=10485760
INT replica.fetch.wait.max.ms=500
LONG replica.high.watermark.checkpoint.interval.ms=5000
LONG replica.lag.time.max.ms=30000
STRING replica.selector.class
INT replica.socket.receive.buffer.bytes=65536
INT replica.socket.timeout.ms=30000
INT replication.quota.window.num=11
INT replication.quota.window.size.seconds=1
INT request.timeout.ms=30000
CLASS sasl.client.callback.handler.class
CLASS sasl.login.callback.handler.class
CLASS sasl.login.class
INT sasl.login.connect.timeout.ms
INT sasl.login.read.timeout.ms
LONG sasl.login.retry.backoff.max.ms=10000
LONG sasl.login.retry.backoff.ms=100
STRING sasl.mechanism.controller.protocol=GSSAPI
STRING sasl.oauthbearer.assertion.algorithm=RS256
STRING sasl.oauthbearer.assertion.claim.aud
INT sasl.oauthbearer.assertion.claim.exp.seconds=300
STRING sasl.oauthbearer.assertion.claim.iss
BOOLEAN sasl.oauthbearer.assertion.claim.jti.include=false
INT sasl.oauthbearer.assertion.claim.nbf.seconds=60
STRING sasl.oauthbearer.assertion.claim.sub
STRING sasl.oauthbearer.assertion.file
STRING sasl.oauthbearer.assertion.private.key.file
PASSWORD sasl.oauthbearer.assertion.private.key.passphrase
STRING sasl.oauthbearer.assertion.template.file
STRING sasl.oauthbearer.client.credentials.client.id
PASSWORD sasl.oauthbearer.client.credentials.client.secret
INT sasl.oauthbearer.clock.skew.seconds=30
LIST sasl.oauthbearer.expected.audience=
STRING sasl.oauthbearer.expected.issuer
LONG sasl.oauthbearer.jwks.endpoint.refresh.ms=3600000
LONG sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=10000
LONG sasl.oauthbearer.jwks.endpoint.retry.backoff.ms=100
STRING sasl.oauthbearer.jwks.endpoint.url
CLASS sasl.oauthbearer.jwt.retriever.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever
CLASS sasl.oauthbearer.jwt.validator.class=org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator
STRING sasl.oauthbearer.scope
STRING sasl.oauthbearer.scope.claim.name=scope
STRING sasl.oauthbearer.sub.claim.name=sub
STRING sasl.oauthbearer.token.endpoint.url
CLASS sasl.server.callback.handler.class
INT sasl.server.max.receive.size=524288
STRING security.inter.broker.protocol=PLAINTEXT
STRING security.providers
INT share.coordinator.append.linger.ms=-1
INT share.coordinator.load.buffer.size=5242880
INT share.coordinator.snapshot.update.records.per.snapshot=500
INT share.coordinator.state.topic.compression.codec=0
SHORT share.coordinator.state.topic.min.isr=2
INT share.coordinator.state.topic.num.partitions=50
SHORT share.coordinator.state.topic.replication.factor=3
INT share.coordinator.state.topic.segment.bytes=104857600
INT share.coordinator.threads=1
INT share.coordinator.write.timeout.ms=5000
INT share.fetch.purgatory.purge.interval.requests=1000
LONG socket.connection.setup.timeout.max.ms=30000
LONG socket.connection.setup.timeout.ms=10000
INT socket.listen.backlog.size=50
INT socket.receive.buffer.bytes=102400
INT socket.request.max.bytes=104857600
INT socket.send.buffer.bytes=102400
BOOLEAN ssl.allow.dn.changes=false
BOOLEAN ssl.allow.san.changes=false
STRING ssl.principal.mapping.rules=DEFAULT
INT telemetry.max.bytes=1048576
INT transaction.abort.timed.out.transaction.cleanup.interval.ms=10000
INT transaction.max.timeout.ms=900000
INT transaction.remove.expired.transaction.cleanup.interval.ms=3600000
INT transaction.state.log.load.buffer.size=5242880
INT transaction.state.log.min.isr=2
INT transaction.state.log.num.partitions=50
SHORT transaction.state.log.replication.factor=3
INT transaction.state.log.segment.bytes=104857600
BOOLEAN transaction.two.phase.commit.enable=false
INT transactional.id.expiration.ms=604800000
"""
)
INTERNAL_CONFIGS: Final = frozenset(
    (
        "controller.performance.always.log.threshold.ms",
        "controller.performance.sample.period.ms",
        "group.consumer.regex.refresh.interval.ms",
        "group.share.initialize.retry.interval.ms",
        "group.share.persister.class.name",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "log.initial.task.delay.ms",
        "producer.id.expiration.check.interval.ms",
        "remote.log.index.file.cache.ttl.ms",
        "remote.log.manager.task.retry.backoff.max.ms",
        "remote.log.manager.task.retry.backoff.ms",
        "remote.log.manager.task.retry.jitter",
        "server.max.startup.time.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.state.topic.prune.interval.ms",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    )
)
"""Kafka's internal configurations, which it does not describe."""
