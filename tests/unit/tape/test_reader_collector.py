import gc

from playhead.tape.reader import collector_paused


def is_old(thing) -> bool:
    return any(one is thing for one in gc.get_objects(generation=2))


def test_what_was_made_meanwhile_is_old_and_the_collector_goes_on():
    with collector_paused():
        assert not gc.isenabled()
        made = [[] for _ in range(10)]
        assert not is_old(made)
    assert gc.isenabled()
    assert is_old(made)


def test_a_stretch_within_another_leaves_the_collector_off():
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_a_program_has_frozen_itself_stays_frozen():
    gc.freeze()
    try:
        with collector_paused():
            made = [[]]
        assert gc.get_freeze_count() > 0
        assert not is_old(made)
    finally:
        gc.unfreeze()
