"""Names that Celery makes from process ids and addresses come back from the tape."""

import os
from types import SimpleNamespace

from playhead.hooks.stream import celery_names


def test_names_made_from_process_ids_are_served_from_the_tape(twice_with):
    nodes = SimpleNamespace(anon_nodename=lambda: f"gen{os.getpid()}-{id(object())}")
    common = SimpleNamespace(generate_oid=lambda node, one: f"{node}-{id(one):x}")
    twice = twice_with((celery_names.hook, nodes), (celery_names.hook_kombu, common))

    def names():
        return nodes.anon_nodename(), common.generate_oid("a", names), common.generate_oid("b", [])

    then = nodes.anon_nodename
    recorded, served = twice(names)
    assert recorded == served
    assert twice.served == 3
    assert nodes.anon_nodename is then
