"""Pages of one file: no script, nothing from elsewhere, dark and light. Every taped text is escaped."""
