"""Follow every program that a command starts, in any language, and by name or by path.

tracer           starts the tracer (`shims/native/follow.c`) beside the command
roles            which programs of the tree are part of the agent, and which are process calls
agent_settings   base URLs in the settings files of agents, and the switches that override them
followed_tree    the running tree: the role of each program, and how an agent in it is started
"""
