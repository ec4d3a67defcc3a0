"""What the programs of ``random_crossings`` call."""

from __future__ import annotations

import os
import pickle
import random
import signal

import numpy as np
from interrupts import interrupt, places_of

import quadpy as qp


def nested(x):
    """The dict of members of a structured array, as fields take it."""
    return {m: nested(x[m]) for m in x.dtype.names} if x.dtype.names else x


def put(array, start, active=None):
    """``start`` becomes the contents; of a sparse array, only the elements ``active``."""
    if active is not None:
        for at in active:
            value = start[at]
            array[at] = value.item() if value.ndim == 0 and not value.dtype.names else as_element(value)
    elif isinstance(array, np.ndarray):
        array[...] = start
    else:
        array.from_numpy(nested(start) if isinstance(array, qp.Field) else start)


def as_element(x):
    if x.dtype.names:
        return {m: as_element(np.asarray(x[m])) for m in x.dtype.names}
    return x.tolist()


def flat(path, x, ndim):
    """The numbers of an array of vectors or structs, one array for each."""
    x = x if isinstance(x, (np.ndarray, dict)) else x.to_numpy()
    if isinstance(x, dict) or x.dtype.names:
        members = x if isinstance(x, dict) else x.dtype.names
        return {p: y for m in members for p, y in flat(f"{path}.{m}", x[m], ndim).items()}
    if x.ndim > ndim:
        return {f"{path}[{k}]": x[..., k].copy() for k in range(x.shape[-1])}
    return {path: x.copy()}


def strided(x, ndim, step):
    """A view with gaps of a larger array, backwards for a negative step, by columns for 0."""
    if step == 0:
        return np.moveaxis(np.moveaxis(x, range(ndim), range(ndim)[::-1]).copy(), range(ndim), range(ndim)[::-1])
    room = np.zeros([2 + abs(step) * n for n in x.shape[:ndim]] + list(x.shape[ndim:]), x.dtype)
    view = room[tuple(slice(1, 1 + abs(step) * n, abs(step)) for n in x.shape[:ndim])]
    view = view[tuple(slice(None, None, -1) for _ in range(ndim))] if step < 0 else view
    view[...] = x
    return view


def forked(program):
    """What ``program`` gives in a child process that is a copy of this one."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            said = program(), ""
        except BaseException as error:  # noqa: BLE001 - the parent raises it
            said = None, f"{type(error).__name__}: {error}"
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(said, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if status or not said:
        raise AssertionError(f"the child ended with status {status}")
    result, wrong = pickle.loads(said)
    if wrong:
        raise AssertionError(f"in the child: {wrong}")
    return result


def interrupted(program, seed):
    """Run ``program``, and again with a Ctrl-C at one of the places that it passed."""
    places = places_of(program, ("runtime", "graph", "jit", "hazards", "profiler", "dist"))
    interrupt(program, random.Random(seed).choice(places))


def fails(call):
    """A call whose check must fail."""
    try:
        call()
        qp.sync()
    except qp.KernelFault:
        return
    raise AssertionError("a check that must fail did not")


def meets(call, collected):
    """Two calls that nothing orders must be found."""
    call()
    if not (collected.certain or collected.possible):
        raise AssertionError("the checker did not find two calls that nothing orders")


def counted(profile, name, least):
    """The profile has the kernel's launches."""
    found = sum(r.kind in ("kernel", "node") and r.name == name for r in profile.records)
    if found < least:
        raise AssertionError(f"the profile has {found} tasks of {name}, of at least {least}")
