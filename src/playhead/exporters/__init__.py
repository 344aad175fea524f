"""A story in other formats: JSON, JUnit, Markdown, tests and fixtures."""
