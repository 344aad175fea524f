"""The stage of the players: one thread for all of them, whichever thread of the program came first."""

import os
import threading

from playhead.hooks.process import stage as process_stage
from playhead.recording import order_slot


class Played:
    """A player that is over as soon as it has played."""

    is_over = True
    place = None
    rank = 0.0

    def __init__(self):
        self.played_by = set()
        self.done = threading.Event()

    def play(self):
        self.played_by.add(threading.get_ident())
        self.done.set()


def test_players_that_enter_at_the_same_time_share_one_thread(monkeypatch):
    monkeypatch.setattr(order_slot, "is_playing", order_slot.is_playing)
    stage, first, second, pipes = process_stage.PlayerStage(), Played(), Played(), []
    make_pipe = os.pipe

    def pipe():
        pipes.append(None)
        if len(pipes) == 1:  # another thread comes in between
            other = threading.Thread(target=stage.enter, args=(second,))
            other.start()
            other.join()
        return make_pipe()

    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", pipe)
        stage.enter(first)
    assert first.done.wait(30)
    assert second.done.wait(30)
    assert len(pipes) == 1
    assert first.played_by == second.played_by
