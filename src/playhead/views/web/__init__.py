"""The viewer: a run as a page. Knows stories and static files; not who serves them."""
