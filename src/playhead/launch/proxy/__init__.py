"""Record and replay programs in any language: a loopback proxy between an agent and its models.

Knows HTTP/1.1 and WebSockets as bytes, and uses the deck like every other boundary; nothing here knows modes. Runs
in a process of its own, beside the command.
"""
