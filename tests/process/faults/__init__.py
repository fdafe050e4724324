"""Faults that are not kills, on real processes under load: slow and hung disks, stopped processes, nodes that come
late, clients that do not read, more load than is taken, programs that compute.

The tests here assert behaviour, in short forms; `python -m tests.process.faults.campaign` runs the long forms and
reports what they cost, as ratios measured in one run.
"""
