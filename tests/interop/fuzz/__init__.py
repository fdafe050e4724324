"""Mutated frames against live nodes: nobody dies, hangs, grows without bound, changes the leader or loses a record.

Three nodes lead and follow while hundreds of thousands of mutants arrive over TCP, and a well-behaved client appends
and reads between them. A mutant is known by seed and number: `python -m tests.interop.campaign fuzz --help`.

**What "leader unchanged" can mean.** Nothing on this port is authenticated, as with Kafka's PLAINTEXT. A well-formed
request that names the cluster, a voter and a higher epoch is an election, whoever sends it; deposing the leader is
then the right answer, not a bug. Such forgeries are made impossible (`forgery.Forgery`), and nothing else is: every
API of the quorum is fuzzed with the live cluster id, voters, directory ids and epoch, so that mutants reach the
decisions behind the checks. Of each frame, as the node will cut it out of the stream, which reads as

* Vote, BeginQuorumEpoch or EndQuorumEpoch of this cluster (its id, or null, which the protocol accepts) with an epoch
  above the live one: the epoch is lowered to the live one. Lower and equal epochs pass.
* the same, with endpoints of a leader: they become those of live nodes, lest a node connects somewhere else.
* the same, whatever its epoch, to the *quiet* follower: the cluster id becomes another one. EndQuorumEpoch from the
  leader itself, for one, has a follower stand for election. One follower (the *victim*) may be told that a thousand
  times: the leader and the quiet one refuse it their pre-votes (KIP-996). Told to both, it rightly is an election.
* Fetch under the quiet follower's name and directory: the name becomes the victim's. Who fetches under a voter's name
  takes its place, answers included; a majority must remain whom nobody impersonates.

The guard reads with the product's codec: what that cannot read, no node can. The report counts what was tamed. Fetch
timeouts are longer than usual (`drive.SETTINGS`): this is not about busy machines.

**What "no hang" means.** Behind each group of mutants comes a valid request, and its answer may take 1 s of the node's
own time: wall time since it was last heard, less what its threads spent runnable without a CPU, and less what they
spent in uninterruptible disk waits (`nodes_time.Stopwatch`). A node that computes, sleeps, waits for a lock or is
stopped is charged; a machine that is busy with something else is not. Where a request before it may wait in good
faith (a consumer's Fetch, an append, what a follower asks the leader), the valid request goes out on another
connection. Answers are counted, too: every well-formed request of an API that is served gets exactly one, and its
connection is not closed. Only how many a replica's Fetches get is left open.
"""
