"""Find the step that changed a file, and the step that wrote a line."""
