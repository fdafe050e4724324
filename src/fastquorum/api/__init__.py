"""The public API: `fastquorum.open` (asyncio), its blocking twin `fastquorum.sync`, and what both share.

The user's code always runs in the user's own thread or event loop; the replica has a thread of its own (`node.io`).
"""
