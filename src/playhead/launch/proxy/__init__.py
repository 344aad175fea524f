"""Record and replay programs in any language: a loopback proxy between an agent and its models.

Knows HTTP/1.1 and WebSockets as bytes, and speaks to the deck as every boundary does; nothing here
knows modes. Runs in a process of Playhead's own, beside the command.
"""
