"""Follow what a command starts, by whatever path, in whatever language.

tracer          starts the tracer (`shims/native/follow.c`) beside the command
roles           which programs of the tree are part of the agent, and which are process calls
followed_tree   the running tree: what each program that is executed is, and how an agent in it is started
"""
