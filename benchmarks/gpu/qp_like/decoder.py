"""quadpy's example of a decoder: some tokens, launched one by one, captured, and replayed."""

from gpu.workloads import TOKENS
from harness.bench import Arrays, StepBench, Way
from harness.language import qp
from quadpy.examples import decode
from quadpy.examples._transformer import Size

PROMPT = "Once upon"
SEED = 1


def _way(decoder, step, picture=None) -> Way:
    def reset() -> None:
        decode.start(decoder, PROMPT)

    def run() -> None:
        for _ in range(TOKENS):
            step(decoder)

    def result() -> Arrays:
        return {"characters": decoder.characters.to_numpy(), "logits": decoder.logits.to_numpy()}

    return Way(run, result, reset, picture=picture)


def _captured(decoder) -> Way:
    with qp.graph.capture() as graph:
        decode.step(decoder)
    launch = graph.instantiate().launch
    return _way(decoder, lambda _: launch(), graph.to_dot)


def build(_: Arrays) -> StepBench:
    size = Size(context=TOKENS + 1)
    chain, forked = (decode.make_decoder(size, SEED, forks=forks) for forks in (False, True))
    graph = _captured(forked)
    ways = {
        "launches": _way(chain, decode.step),
        "launches, forks": _way(forked, decode.step),
        "graph": graph,
        "graph, no forks": _captured(chain),
        "replay": _way(forked, qp.graph.replay(decode.step), graph.picture),
    }
    return StepBench(ways, once=True, steps=TOKENS)


BUILDERS = {"decode": build}
