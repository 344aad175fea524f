"""Follow what a command starts, by whatever path, in whatever language.

tracer          starts the tracer (`shims/native/follow.c`) beside the command
followed_tree   the running tree: what each program that is executed is, and how an agent in it is started

Which programs are part of the agent, and which are process calls, says `proxy.roles`.
"""
