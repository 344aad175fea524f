"""Where Python decides what comes first: event loops, executors, queues, threads, outputs.

While recording, each hook notes a point (`recording/points`). In a replay it waits until the playhead has
come to that point (`replay/playhead`).
"""
