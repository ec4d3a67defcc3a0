"""Collections of the objects that are alive."""

from __future__ import annotations

import gc
import threading

from quadpy.runtime.device.locks import LiveObjects


class Thing:
    pass


def test_the_dead_are_gone():
    known, kept = LiveObjects(), [Thing(), Thing()]
    for thing in (*kept, Thing()):
        known.add(thing)
    del thing
    gc.collect()
    assert sorted(map(id, known)) == sorted(map(id, kept))


def test_other_threads_add_and_drop_while_one_iterates():
    known, kept, end, failed = LiveObjects(), [Thing() for _ in range(50)], threading.Event(), []
    for thing in kept:
        known.add(thing)

    def change():
        mine = []
        while not end.is_set():
            mine.append(Thing())
            known.add(mine[-1])
            if len(mine) > 20:
                mine.clear()

    threads = [threading.Thread(target=change) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(300):
            if not set(map(id, kept)) <= set(map(id, known)):
                failed.append("one that lives is missing")
    finally:
        end.set()
        for thread in threads:
            thread.join()
    assert not failed
