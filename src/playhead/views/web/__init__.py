"""The web viewer: the page, its data, and the HTTP API. Knows stories and static files."""
