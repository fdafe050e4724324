"""The load generator: open loop on an absolute schedule, latency from the moment that was intended, bounded in flight.

`plan` says what to run and `schedule` when each arrival is due. A worker process (`worker`) generates: its inner loop
is `generating`, which drives a `Driver` (`embedded`, `embedded_asyncio`, `wire_driver`, `kafka_driver`). The process
that was started by the user only supervises (`stage`, `running`), so that progress bars and histograms take no time
from the generator. Results are plain JSON (`result`), kept in a `history`, compared by `compare`, drawn by `chart`,
`svg` and `page`.

Knows the public API and Kafka's wire format; nothing of the protocol, the disk or the command line.
"""
