"""Hooks at the boundary between an agent and the world, each where its library does the work.

One module per library; `registry` is the table. Knows libraries; does not know modes or views.
"""
