"""What Playhead costs, measured."""
