"""Run by test_native_waiters: a process forks while a letter waits; its child lets go of the mailbox."""

import os
import select

from fastquorum.kernels.shell import load_shell

box = load_shell().Mailbox()
box.post("first", 1)
child = os.fork()
if child == 0:
    del box
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert select.select([box], [], [], 0)[0], "the child has taken the parent's signal"
assert box.collect() == [("first", 1)]
box.post("second", 2)
assert select.select([box], [], [], 0)[0]
assert box.collect() == [("second", 2)]
