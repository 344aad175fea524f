"""Hooks where Python decides the order of events: event loops, executors, queues, threads, outputs.

While recording, each hook notes a point (`recording/points`). In a replay it waits until the playhead reaches
that point (`replay/playhead`).
"""
