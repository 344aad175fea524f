"""The one process of Playhead's own that runs beside a recorded command; see docs/design/020-sidecar.md."""
