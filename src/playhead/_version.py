"""The version of this release. Knows the number; not the version of the tape format."""

__version__ = "0.1.0"
