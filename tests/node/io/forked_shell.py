"""Run by test_native_connections: a process with a native shell forks; its child lets go of the shell's descriptors."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.lane.builders import value_batch
from tests.node.io.native_rig import Rig, result, until

rig = Rig(Path(sys.argv[1]))
rig.lead([1])
peer = rig.connect()
# Another shell's sockets' thread, a follower's, is busy with a sync: a connection closed meanwhile is still open.
(Path(sys.argv[1]) / "busy").mkdir()
busy = Rig(Path(sys.argv[1]) / "busy", node_id=2)
leader = busy.connect()
busy.follow(leader)
busy.shell.hold_syncs(True)
leader.reply(leader.question(), value_batch(1, 5))
until(lambda: busy.shell.flush_began_us >= 0, "the sync begins")
busy.shell.close_connection(leader.number)
go_reader, go_writer = os.pipe()
done_reader, done_writer = os.pipe()
child = os.fork()
if child == 0:
    rig.shell.abandon_in_child()
    busy.shell.abandon_in_child()
    os.write(done_writer, b"x")
    os.read(go_reader, 1)  # the parent has seen what it wanted
    rig.shell.end_threads()  # nothing to join here, and nothing that waits for a lock
    del rig, busy
    os._exit(0)
os.read(done_reader, 1)
# The parent goes on as if nothing had happened, ...
assert result(rig.append()) == 1
peer.send(b"\0\x34 unusual")
rig.await_news(lambda: rig.events or rig.handed_up)
# ... and a connection that it closes is closed, though the child lives.
rig.shell.close_connection(peer.number)
peer.sock.settimeout(20)
assert peer.sock.recv(1) == b""
busy.shell.hold_syncs(False)
assert leader.frames() == []
os.write(go_writer, b"x")
assert os.waitpid(child, 0)[1] == 0
rig.close()
busy.close()
