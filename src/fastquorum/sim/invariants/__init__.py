"""The promises, each checked against the ghost at the moment it could be broken.

`state` looks at a node after each event, `emissions` into each frame as it leaves, `timers` at elections and
resignations, `lanes` at every call of a lane, `clients` at each answer to a caller. The ghost checks logs and votes on
disk as it learns of them, `sim.phases` the goals that wait for quiet. A `Violation` names the broken promise. The
numbers have gaps: a missing number has no check of its own here.

Safety, at every moment:
- S1: an epoch has one leader at most, in all of history.
- S2: a node gives one vote an epoch, and never forgets or changes it, not even by a restart.
- S3: a vote, given or asked for, is durable before anybody hears of it.
- S4: a node's epoch never falls, is not below its log's, and is durable before the node speaks of it.
- S5: a restarted node never leads again an epoch that it led before.
- S6: a leader only appends to its log.
- S7: logs that agree on an entry's epoch and offset agree on everything before it; offsets and epochs leave no gap
  and never fall.
- S8: an epoch and an offset name one content for ever, also of entries cut off or lost since.
- S9: whoever leads holds everything that earlier epochs committed, and a vote goes to no log behind the granter's.
- S10: what nodes take for committed is the same everywhere.
- S11: nothing committed is cut off, nor anything that a node was counted for in a commit.
- S12: a high watermark never falls, lies on a batch's end within the log, and is not told before it is known.
- S13: a leader commits what is durable on a majority of voters (itself counted alike), up to an entry of its epoch.
- S14: an acknowledged append is durable on a majority and stays, once; a refused one is never committed.
- S15: a node claims no more of a log than it holds: a Fetch's offset is durable, its epoch the log's.
- S16: a read sees everything acknowledged before it began, and nothing that is not committed.
- S17: requests of another epoch are not served.
- S22: nobody stands for election without pre-votes of a majority.
- S23: a leader from whose voters no majority is heard any more leaves its lead in time.
- S24: what a log no longer holds is in a durable snapshot, and a snapshot is the committed image at its end.
- S25: after a crash recovery accepts the directory, and keeps at least everything that was durable.
- S28: an append of several records is there as a whole, in one piece, or not at all.
- S29: after a failed sync or save a node says nothing more.
- S30: entries that were cut off do not come back by a restart.
- S31: a named producer that says its appends in order is never refused for good, unless it is fenced, and then always.
- S32: no node says that another acts in its name or has lost records, that a voter's epoch cannot be, or that a
  request met a fault of its own; but what a stranger says may be told.
- S33: nobody who is no member moves a node far from the epochs that elections lead to.
- S34: what a directory says to be committed is, and a start forgets none of it.
- F20: a leader whose disk does not come back from a sync leaves its lead in time.

Of a cluster (`sim.cluster`: `metadata`, `registrations`, `topics`), on the committed metadata:
- C1: a leader is in sync, registered and unfenced; in its controlled shutdown it leads only what nobody else could.
- C2: an ISR is a part of the replicas, which are distinct; without eligible leader replicas it is never empty.
- C3: whoever joins an ISR is registered, unfenced, not shutting down, and joins by its present broker epoch.
- C4: a broker epoch is the offset of its registration, grows, and stays with its incarnation.
- C5: leader and partition epochs never fall; a change of leader raises the one, any change the other by one.
- C6: requests of former epochs are refused, and what is ahead of the controller is not for this controller.
- C7: nobody takes the id of a broker that is heard, and no broker of another cluster is taken in.
- C8: who is heard, or could not be since the lead began, is not fenced; who has not read its registration stays fenced.
- C9: nobody is elected uncleanly unless that is allowed or asked for.
- C10: a replica goes only when those that are to take its place are in sync.
- C15: a user creates no internal topic, and topic ids are unique.
- C16: every replica's image is what was committed.
- C17: of the processes that join as one broker at most one acts at a time (`sim.cluster.members`, with `broker/` as it
  ships), and none is let in while another may act.

The lane's seven rules (`kernels/lane.py` has them in full). R1, R3 and R6 are checked by name; a breach of another
shows in the promise that it serves:
- R1: a lead is announced and served only when it is durable.
- R2: raft/ decides on a frozen lane's state, never on one that moves on.
- R3: a closed lane's epoch sends nothing more.
- R4: a sync counts for what was written before it began, and not past a truncation.
- R5: a failed sync is final: nothing is sent, acknowledged or appended after it.
- R6: a node that was held up itself neither stands nor resigns because of it: contacts count, not the time lost.
- R7: a linearizable read waits for a majority's Fetches from after it began.

Progress, once the faults end:
- L1: every mended node comes back, and one of them leads.
- L2: every append is settled.
- L3: the mended nodes' logs become equal, and durable to their ends.
- L4: then nobody is elected without a reason.
- L8: every living broker is unfenced, and every living controller registered.
- L9: every partition with a living replica that may lead has a leader, and all living replicas are in sync.
- L12: messages do not breed messages without end.
- L13: a voter that comes back beside a leader deposes nobody, whatever a stranger asks of it.
"""
