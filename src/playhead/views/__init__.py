"""Views of a run, made from its story: text, terminal UI, web, HTML pages. They never import hooks."""
