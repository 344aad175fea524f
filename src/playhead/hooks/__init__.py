"""What crosses between an agent and the world, hooked where each library really does it.

One file a library; `registry` says which. Knows libraries; not modes, not views.
"""
