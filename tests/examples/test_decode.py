"""The decoder writes the same text however its kernels are launched, and the same as NumPy."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from backends import backends

import quadpy as qp
from quadpy.errors import QuadpyError
from quadpy.examples import _transformer, decode
from quadpy.examples._transformer import Size, alphabet

SMALL = Size(layers=1, width=16, heads=2, hidden=24, context=6)  # an emulated GPU takes its time over each launch
DEEP = Size(layers=3, width=16, heads=2, hidden=24, context=14)
PROMPT = "Ab"
SEED = 1
CALLS = SMALL.context - 1


@pytest.fixture(params=backends())
def arch(request, cpu):
    qp.init(arch=request.param)
    return request.param


def results(decoder):
    """The text, and the bytes of the state."""
    caches = [array.to_numpy().tobytes() for array in (*decoder.keys, *decoder.values)]
    return decode.written(decoder), decoder.logits.to_numpy().tobytes(), *caches


def run(call, decoder):
    """The text and state of a decoder that writes until its context is full."""
    decode.start(decoder, PROMPT)
    for _ in range(decoder.characters.shape[0] - 1):
        call(decoder)
    return results(decoder)


def made(size=SMALL, **options):
    return decode.make_decoder(size, SEED, **options)


@pytest.fixture
def expected(arch):
    """Calls made one by one, on one stream."""
    return run(decode.step, made(forks=False))


def test_forks_change_nothing(expected):
    assert run(decode.step, made()) == expected


@pytest.mark.parametrize("forks", [False, True])
def test_captured(expected, forks):
    decoder = made(forks=forks)
    with qp.graph.capture() as graph:
        decode.step(decoder)
    with graph.instantiate() as exec_:
        assert run(lambda _: exec_.launch(), decoder) == expected


def test_replayed_without_python(expected):
    decoder, replayed = made(), qp.graph.replay(decode.step)
    assert run(replayed, decoder) == expected
    stats = replayed.stats
    assert (stats.captures, stats.replays, stats.updates, stats.fallbacks) == (1, CALLS, 0, 0)


def test_replayed_with_another_decoder_in_each_call(expected):
    decoders, replayed = [made(), made()], qp.graph.replay(decode.step)
    for decoder in decoders:
        decode.start(decoder, PROMPT)
    for _ in range(CALLS):
        for decoder in decoders:
            replayed(decoder)
    assert [results(decoder) for decoder in decoders] == [expected, expected]
    assert replayed.stats.fallbacks == 0


def test_made_by_hand(expected, monkeypatch):
    decoder, graph = made(forks=False), qp.graph.Graph()

    def adds(kernel):
        return lambda *args: graph.add_kernel(kernel, *args)

    names = [name for name in _transformer.__all__ if hasattr(type(getattr(_transformer, name)), "__quadpy_kernel__")]
    monkeypatch.setattr(
        decode, "kernels", SimpleNamespace(**{name: adds(getattr(_transformer, name)) for name in names})
    )
    decode.step(decoder)
    with graph.instantiate() as exec_:
        assert run(lambda _: exec_.launch(), decoder) == expected


def captured(size):
    with qp.graph.capture() as graph:
        decode.step(made(size))
    return graph


def test_a_step_is_many_launches():
    assert len(captured(Size(width=16, hidden=16, context=4))) >= 50


def test_projections_are_forks():
    """Queries, keys and values are independent, and so are the two halves of the MLP."""
    graph = captured(Size(layers=1, width=16, heads=2, hidden=16, context=4))
    after = {node.name: set(node.after) for node in graph}

    def reach(name):
        return after[name].union(*map(reach, after[name])) if after[name] else set()

    projections = [name for name in after if name.startswith("project") and "add" not in name]
    apart = [
        (a, b) for n, a in enumerate(projections) for b in projections[:n] if a not in reach(b) and b not in reach(a)
    ]
    assert len(projections) == 5
    assert len(apart) == 3 + 1


# against NumPy


def rms(x, gain):
    return x / np.sqrt(np.mean(x * x) + 1e-5) * gain


def rotated(x, at, heads):
    x = x.reshape(heads, 2, -1)
    angle = at * 1e4 ** (-np.arange(x.shape[2]) / x.shape[2])
    c, s = np.cos(angle), np.sin(angle)
    return np.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1]], 1).ravel()


def logits_by_numpy(weights, characters, size):
    """The logits after each character in double precision, with keys and values rounded as they are stored."""
    found, keys, values = [], [[] for _ in weights.layers], [[] for _ in weights.layers]
    for at, character in enumerate(characters):
        x = weights.embedding[character].astype(float)
        for n, layer in enumerate(weights.layers):
            y = rms(x, layer.attention_gain.astype(float))
            q, k, v = (y @ w.astype(float) for w in (layer.q, layer.k, layer.v))
            keys[n].append(rotated(k, at, size.heads).astype(np.float16))
            values[n].append(v.astype(np.float16))
            q = rotated(q, at, size.heads).reshape(size.heads, -1)
            shape = (at + 1, *q.shape)
            scores = np.einsum("hi,thi->ht", q, np.array(keys[n], float).reshape(shape)) / np.sqrt(q.shape[1])
            share = np.exp(scores - scores.max(1, keepdims=True))
            share /= share.sum(1, keepdims=True)
            x += np.einsum("ht,thi->hi", share, np.array(values[n], float).reshape(shape)).ravel() @ layer.out
            y = rms(x, layer.mlp_gain.astype(float))
            g = y @ layer.gate.astype(float)
            x += (g / (1 + np.exp(-g)) * (y @ layer.up)) @ layer.down
        found.append(rms(x, weights.gain.astype(float)) @ weights.out)
    return np.array(found)


def test_logits_and_choices_are_those_of_numpy(arch):
    size = DEEP if arch == "cpu" else SMALL
    decoder = made(size)
    run(decode.step, decoder)
    characters, own = decoder.characters.to_numpy(), len(PROMPT)
    expected = logits_by_numpy(_transformer.random_weights(size, SEED), characters[:-1], size)
    np.testing.assert_allclose(decoder.logits.to_numpy()[:-1], expected, atol=0.01)
    two = np.sort(expected[own - 1 :])[:, -2:]
    assert (two[:, 1] - two[:, 0]).min() > 0.1, "weights that make no clear choice test nothing"
    assert characters[own:].tolist() == expected[own - 1 :].argmax(1).tolist()


# the program


def test_it_begins_with_the_prompt_and_stops_where_its_context_ends():
    decoder = made()
    decode.start(decoder, PROMPT)
    for _ in range(CALLS + 3):
        decode.step(decoder)
    text = decode.written(decoder)
    assert text.startswith(PROMPT)
    assert len(text) == SMALL.context
    assert set(text) <= set(alphabet)


@pytest.mark.parametrize("prompt", ["", "a" * 15, "naïve"])
def test_what_is_no_prompt(prompt):
    with pytest.raises(QuadpyError, match="is not a valid prompt"):
        decode.start(made(), prompt)


def test_a_prompt_on_the_command_line(tmp_path, capsys):
    out = tmp_path / "decode.png"
    assert decode.main(["--steps", "9", "--size", "1", "--prompt", "Hi", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Hi")
    assert "tokens/s" in shown
    assert decode.main(["--prompt", "ü", "--out", str(out)]) == 1
    assert "'ü' is not a valid prompt" in capsys.readouterr().err
