"""The configurations of a node that can be set while it runs: names, types and defaults.

Source: KIP-226; Kafka 4.3 `DynamicBrokerConfig`, `DynamicConfig`.
"""

from typing import Final

from fastquorum.controller.definitions.definition import defined

CLUSTER_CONFIGS: Final = defined(
    """
INT background.threads=10
INT compression.gzip.level=-1
INT compression.lz4.level=9
STRING compression.type=producer
INT compression.zstd.level=3
LIST config.providers=
BOOLEAN follower.fetch.last.tiered.offset.enable=false
INT group.consumer.assignment.interval.ms=1000
INT group.coordinator.cached.buffer.max.bytes=1048588
INT group.share.assignment.interval.ms=1000
INT group.streams.assignment.interval.ms=1000
LONG log.cleaner.backoff.ms=15000
LONG log.cleaner.dedupe.buffer.size=134217728
LONG log.cleaner.delete.retention.ms=86400000
DOUBLE log.cleaner.io.buffer.load.factor=0.9
INT log.cleaner.io.buffer.size=524288
DOUBLE log.cleaner.io.max.bytes.per.second=1.7976931348623157E308
LONG log.cleaner.max.compaction.lag.ms=9223372036854775807
DOUBLE log.cleaner.min.cleanable.ratio=0.5
LONG log.cleaner.min.compaction.lag.ms=0
INT log.cleaner.threads=1
LIST log.cleanup.policy=delete
LONG log.flush.interval.messages=9223372036854775807
LONG log.flush.interval.ms
INT log.index.interval.bytes=4096
INT log.index.size.max.bytes=10485760
LONG log.local.retention.bytes=-2
LONG log.local.retention.ms=-2
LONG log.message.timestamp.after.max.ms=3600000
LONG log.message.timestamp.before.max.ms=9223372036854775807
STRING log.message.timestamp.type=CreateTime
BOOLEAN log.preallocate=false
LONG log.retention.bytes=-1
LONG log.retention.ms
LONG log.roll.jitter.ms
LONG log.roll.ms
INT log.segment.bytes=1073741824
LONG log.segment.delete.delay.ms=60000
INT max.connection.creation.rate=2147483647
INT max.connections=2147483647
INT max.connections.per.ip=2147483647
STRING max.connections.per.ip.overrides=
INT message.max.bytes=1048588
LIST metric.reporters=org.apache.kafka.common.metrics.JmxReporter
INT min.insync.replicas=1
INT num.io.threads=8
INT num.network.threads=3
INT num.recovery.threads.per.data.dir=2
INT num.replica.fetchers=1
INT producer.id.expiration.ms=86400000
INT remote.fetch.max.wait.ms=500
LONG remote.list.offsets.request.timeout.ms=30000
LONG remote.log.index.file.cache.total.size.bytes=1073741824
INT remote.log.manager.copier.thread.pool.size=10
LONG remote.log.manager.copy.max.bytes.per.second=9223372036854775807
INT remote.log.manager.expiration.thread.pool.size=10
LONG remote.log.manager.fetch.max.bytes.per.second=9223372036854775807
INT remote.log.manager.follower.thread.pool.size=2
INT remote.log.reader.threads=10
INT share.coordinator.cached.buffer.max.bytes=1048588
BOOLEAN transaction.partition.verification.enable=true
BOOLEAN unclean.leader.election.enable=false
"""
)
"""Configurations that can be set for one node, or for all."""
NODE_CONFIGS: Final = defined(
    """
LIST cordoned.log.dirs=
STRING listener.security.protocol.map=SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
LIST listeners=PLAINTEXT://:9092
CLASS principal.builder.class=org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder
LIST sasl.enabled.mechanisms=GSSAPI
PASSWORD sasl.jaas.config
STRING sasl.kerberos.kinit.cmd=/usr/bin/kinit
LONG sasl.kerberos.min.time.before.relogin=60000
LIST sasl.kerberos.principal.to.local.rules=DEFAULT
STRING sasl.kerberos.service.name
DOUBLE sasl.kerberos.ticket.renew.jitter=0.05
DOUBLE sasl.kerberos.ticket.renew.window.factor=0.8
SHORT sasl.login.refresh.buffer.seconds=300
SHORT sasl.login.refresh.min.period.seconds=60
DOUBLE sasl.login.refresh.window.factor=0.8
DOUBLE sasl.login.refresh.window.jitter=0.05
STRING sasl.mechanism.inter.broker.protocol=GSSAPI
LIST ssl.cipher.suites=
STRING ssl.client.auth=none
LIST ssl.enabled.protocols=TLSv1.2,TLSv1.3
STRING ssl.endpoint.identification.algorithm=https
CLASS ssl.engine.factory.class
PASSWORD ssl.key.password
STRING ssl.keymanager.algorithm=SunX509
PASSWORD ssl.keystore.certificate.chain
PASSWORD ssl.keystore.key
STRING ssl.keystore.location
PASSWORD ssl.keystore.password
STRING ssl.keystore.type=JKS
STRING ssl.protocol=TLSv1.3
STRING ssl.provider
STRING ssl.secure.random.implementation
STRING ssl.trustmanager.algorithm=PKIX
PASSWORD ssl.truststore.certificates
STRING ssl.truststore.location
PASSWORD ssl.truststore.password
STRING ssl.truststore.type=JKS
"""
)
"""Configurations that can be set for one node only."""
QUOTA_CONFIGS: Final = defined(
    """
LONG follower.replication.throttled.rate=9223372036854775807
LONG leader.replication.throttled.rate=9223372036854775807
LONG replica.alter.log.dirs.io.max.bytes.per.second=9223372036854775807
"""
)
"""Configurations that are only ever set while a node runs, and not described before."""
