"""Watching over a running node: its numbers in Kafka's names and ours, whether it is well, and where that is told.

| module | what |
|---|---|
| `families` | what a metric is |
| `kafka`, `own`, `catalogue` | every metric that there is, and the Grafana dashboard, `grafana.json` |
| `exposition` | the Prometheus text format, both ways |
| `window` | rates and latencies of the last half minute |
| `stages` | the stages of a commit, as histograms with few buckets |
| `process` | what the process takes of its machine |
| `recorder` | numbers asked for from any thread, taken on the replica's |
| `health` | is it alive, is it ready |
| `serving` | /metrics, /healthz, /readyz |
| `otel` | the same metrics, pushed by OTLP |
| `starting` | a node with all of this, as its settings say |

Must not take part in anything: a node does the same whether or not it is watched.
"""
