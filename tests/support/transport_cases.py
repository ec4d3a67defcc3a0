"""What every transport must do: programs that each rank runs, by name.

A case takes the world and runs on all ranks together; it raises on a rank where something is wrong.
"""

import numpy as np

import quadpy as qp
from quadpy.dist.transport.agreement import agree
from quadpy.dist.transport.protocol import FlatPart, Receive, Send
from quadpy.errors import RanksDisagreeError, TransportError

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def array_of(values, dtype=qp.f32):
    numbers = np.asarray(values)
    array = qp.ndarray(dtype, numbers.shape)
    array.from_numpy(numbers)
    return array


def stream_of(array):
    return qp.create_stream() if array.device is None else array.device.create_stream()


def raised(expected, function, *arguments):
    """The text of the error that ``function`` raises."""
    try:
        function(*arguments)
    except expected as error:
        return str(error)
    raise AssertionError(f"{function} raised nothing")


@case
def ring(world):
    """Each rank sends to the next one; the data arrives from the one before."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    mine, theirs = array_of(np.arange(10) + 100 * world.rank), array_of(np.zeros(10))
    started = world.transport.start_exchange(
        [Send(right, FlatPart.whole(mine))], [Receive(left, FlatPart.whole(theirs))], stream_of(mine)
    )
    started.finish()
    assert theirs.to_numpy().tolist() == [100.0 * left + i for i in range(10)]


@case
def both_ways_between_the_same_ranks(world):
    """On a periodic axis of two ranks both neighbours are the same rank: tags say which face is which."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    mine = array_of(np.arange(8) + 100 * world.rank)
    theirs = array_of(np.zeros(8))
    sends = [Send(left, FlatPart(mine, 0, 4), tag=0), Send(right, FlatPart(mine, 4, 4), tag=1)]
    receives = [Receive(left, FlatPart(theirs, 0, 4), tag=1), Receive(right, FlatPart(theirs, 4, 4), tag=0)]
    world.transport.start_exchange(sends, receives, stream_of(mine)).finish()
    expected = [100.0 * left + i for i in range(4, 8)] + [100.0 * right + i for i in range(4)]
    assert theirs.to_numpy().tolist() == expected


@case
def order_of_messages_is_free(world):
    """Receives in another order than the sends: they pair by tag."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    mine, theirs = array_of(np.arange(6) + 100 * world.rank), array_of(np.zeros(6))
    sends = [Send(right, FlatPart(mine, 2 * tag, 2), tag) for tag in (2, 0, 1)]
    receives = [Receive(left, FlatPart(theirs, 2 * tag, 2), tag) for tag in (1, 2, 0)]
    world.transport.start_exchange(sends, receives, stream_of(mine)).finish()
    assert theirs.to_numpy().tolist() == [100.0 * left + i for i in range(6)]


@case
def many_exchanges_with_the_same_tags(world):
    """Exchanges do not mix, whatever runs ahead."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    mine, theirs = array_of(np.zeros(3)), array_of(np.zeros(3))
    stream = stream_of(mine)
    for step in range(20):
        mine.from_numpy(np.full(3, step + 1000.0 * world.rank), stream=stream)
        exchange = [Send(right, FlatPart.whole(mine), 7)], [Receive(left, FlatPart.whole(theirs), 7)]
        world.transport.start_exchange(*exchange, stream).finish()
        assert theirs.to_numpy(stream=stream).tolist() == [step + 1000.0 * left] * 3


@case
def messages_of_many_sizes(world):
    """Nothing, one number, and more than any buffer of an engine."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for count in (0, 1, 4097, 300_000):
        values = np.random.default_rng(count).random(count + 1, np.float32)
        mine, theirs = array_of(values + np.float32(world.rank)), array_of(np.zeros(count + 1))
        sends, receives = [Send(right, FlatPart(mine, 1, count))], [Receive(left, FlatPart(theirs, 1, count))]
        world.transport.start_exchange(sends, receives, stream_of(mine)).finish()
        got = theirs.to_numpy()
        assert got[0] == 0
        assert np.array_equal(got[1:], (values + np.float32(left))[1:])


@case
def exchange_with_everyone(world):
    """Every rank sends another number of values to every rank, itself included."""
    ranks = range(world.size)
    mine = array_of(np.arange(world.size * (world.size + 1)) + 1000 * world.rank, qp.f64)
    theirs = array_of(np.zeros(world.size * (world.rank + 1)), qp.f64)
    sends = [Send(peer, FlatPart(mine, 0, peer + 1), 5) for peer in ranks]
    receives = [Receive(peer, FlatPart(theirs, peer * (world.rank + 1), world.rank + 1), 5) for peer in ranks]
    world.transport.start_exchange(sends, receives, stream_of(mine)).finish()
    assert theirs.to_numpy().tolist() == [1000.0 * peer + i for peer in ranks for i in range(world.rank + 1)]


@case
def all_types(world):
    """Bits arrive as they are, of every dtype, NaN included."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for dtype in (qp.i8, qp.u16, qp.i64, qp.u64, qp.f16, qp.bf16, qp.f64):
        values = [3.0, float("nan")] if dtype.is_float else [3, 100]
        mine, theirs = array_of(np.array([values[0] + world.rank, values[1]]), dtype), array_of(np.zeros(2, int), dtype)
        exchange = [Send(right, FlatPart.whole(mine))], [Receive(left, FlatPart.whole(theirs))]
        world.transport.start_exchange(*exchange, stream_of(mine)).finish()
        np.testing.assert_array_equal(theirs.to_numpy(), [values[0] + left, values[1]])


@case
def vectors_and_matrices(world):
    """A part counts numbers, whatever the element."""
    mine, theirs = qp.ndarray(qp.types.vector(3, qp.f32), 4), qp.ndarray(qp.types.vector(3, qp.f32), 4)
    mine.from_numpy(np.arange(12, dtype=np.float32).reshape(4, 3) + 100 * world.rank)
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    exchange = [Send(right, FlatPart(mine, 3, 6))], [Receive(left, FlatPart(theirs, 6, 6))]
    world.transport.start_exchange(*exchange, stream_of(mine)).finish()
    assert theirs.to_numpy()[2:].ravel().tolist() == [100.0 * left + i for i in range(3, 9)]
    assert not theirs.to_numpy()[:2].any()


@case
def all_gather(world):
    mine, everything = array_of([world.rank, -world.rank], qp.i32), array_of(np.zeros(2 * world.size, int), qp.i32)
    world.transport.all_gather(FlatPart.whole(mine), FlatPart.whole(everything), stream_of(mine))
    assert everything.to_numpy().tolist() == [sign * rank for rank in range(world.size) for sign in (1, -1)]


@case
def share(world):
    """Of any length, none included."""
    told = world.transport.share(bytes([world.rank]) * (3 * world.rank))
    assert told == [bytes([rank]) * (3 * rank) for rank in range(world.size)]
    world.transport.share()


@case
def after_work_on_the_stream(world):
    """An exchange comes after the writes before it on any stream, and reads of its result come after it."""
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    mine, theirs = array_of(np.zeros(50_000)), array_of(np.zeros(50_000))
    other = stream_of(mine)
    mine.fill(world.rank + 1, stream=other)
    exchange = [Send(right, FlatPart.whole(mine))], [Receive(left, FlatPart.whole(theirs))]
    world.transport.start_exchange(*exchange, stream_of(mine)).finish()
    mine.fill(-1, stream=other)
    assert (theirs.to_numpy(stream=stream_of(mine)) == left + 1).all()


@case
def agreement(world):
    agree(world.transport, "the shape of the grid", "8 x 8")
    if world.size == 1:
        return
    shape = "8 x 9" if world.rank == world.size - 1 else "8 x 8"
    text = raised(RanksDisagreeError, agree, world.transport, "the shape of the grid", shape)
    rest = ", ".join(map(str, range(world.size - 1)))
    s = "s" if world.size > 2 else ""
    assert (
        f"ranks disagree about the shape of the grid: 8 x 8 on rank{s} {rest}; 8 x 9 on rank {world.size - 1}" in text
    )


@case
def wrong_calls(world):
    """What one rank can see alone is refused before anything is sent."""
    array = array_of(np.zeros(4))
    stream = stream_of(array)
    part = FlatPart.whole(array)
    transport = world.transport
    nobody = world.size
    assert "there is no rank" in raised(TransportError, transport.start_exchange, [Send(nobody, part)], [], stream)
    assert "which has 4" in raised(TransportError, FlatPart, array, 2, 3)
    text = raised(TransportError, transport.all_gather, part, FlatPart(array, 0, 3), stream)
    assert f"{16 * world.size} bytes to a receive of 12" in text
    twice = [Send(0, FlatPart(array, 0, 1), 3), Send(0, FlatPart(array, 1, 1), 3)]
    assert "two sends to rank 0 with tag 3" in raised(TransportError, transport.start_exchange, twice, [], stream)
    transport.share()
