"""How a crossing program launches its kernel: streams, graphs, checks and processes, as text."""

from __future__ import annotations

from dataclasses import dataclass

from random_kernels import indented

HOSTS = ("debug", "hazards", "profile", "streams", "sections", "graphs", "replay", "ranks", "Ctrl-C", "fork")


@dataclass
class Host:
    """``calls`` has the number of the scalar argument of each call, in order; ``options`` are the kernel's."""

    text: str
    calls: list[int]
    options: str


def host_of(draw, features, arrays, scalars, *, ranks, visited, sections):
    """The functions ``program`` and ``main``."""
    has = features.__contains__
    style = draw.choice(["capture", "capture", "nodes", "kernel"]) if has("graphs") else None
    if style == "nodes" and (ranks or has("replay")):
        style = "capture"
    arguments = ", ".join([a.argument for a in arrays if a.argument] + ["{}"] + ["bad"] * has("debug"))

    def call(a, stream=None, bad="0"):
        return f"k({arguments.format(a).replace('bad', bad)}{f', stream={stream}' if stream else ''})"

    aside = has("streams") and style != "nodes"
    order = ["fork.record()", "fork.wait(side)", call("a", "side"), "join.record(side)", "join.wait()"]
    once = ["def once(a):", *indented([call("a"), *(order if aside else [])])]
    waits = [] if all(map(_is_device, arrays)) else ["qp.sync()"]  # a graph's launch may still use host arrays
    drive, calls = _drive(style, has, call, ranks, [str(x) for x in scalars], waits, twice=aside)
    whole = ["drive()"]
    tasks = "profile, 'k', " + ("1" if visited and style in (None, "kernel") and not has("replay") else "0")
    layers = [(["with qp.hazards.check() as found:"], ["assert not found.certain and not found.possible, str(found)"])]
    layers *= has("hazards")
    layers += [(["with qp.profile() as profile:"], [f"counted({tasks})"])] * has("profile")
    draw.shuffle(layers)
    for before, after in layers:
        whole = [*before, *indented(whole), *after]
    puts = [f"put({a.name}, {a.name.upper()}0{f', {a.active}' if a.active is not None else ''})" for a in arrays]
    lines = ["grid = qp.dist.Grid(" + f"{arrays[0].shape}, periodic=True)"] if ranks else []
    lines += [line for a in arrays for line in a.made] + puts
    if has("streams"):
        lines += [
            "side, other = qp.create_stream(), qp.create_stream()",
            "fork, join = qp.create_event(), qp.create_event()",
        ]
    lines += [*once, "def drive():", *indented(drive), "def whole():", *indented(whole), "whole()"]
    if has("Ctrl-C"):
        lines += [*puts, f"interrupted(whole, {draw.randrange(10**6)})", "qp.sync()", *puts, "whole()"]
    ndim = len(arrays[0].shape)
    lines += ["result = {" + ", ".join(f"**flat('{a.name}', {a.name}, {ndim})" for a in arrays) + "}"]
    if has("debug") and visited:
        lines += [f"fails(lambda: {call(scalars[0], bad='10**9')})"]
    if has("hazards") and has("streams") and visited and not has("debug") and not ranks and _is_device(arrays[0]):
        lines += [call(scalars[0], "side"), "with qp.hazards.check(collect=True) as found:"]
        lines += indented([call(scalars[0], "side"), f"meets(lambda: {call(scalars[0], 'other')}, found)"])
        lines += ["qp.sync()"]
    main = "results = [program()]"
    if ranks:
        main = f"results = run_ranks({ranks}, program, timeout=60)"
    mains = [main]
    if has("fork"):
        mains += [
            f"results += {f'forked(lambda: run_ranks({ranks}, program, timeout=60))' if ranks else '[forked(program)]'}"
        ]
    debug = has("debug") and draw.random() < 0.5
    threads = ", cpu_max_num_threads=2, random_seed=1" + ", debug=True" * debug
    text = ["def program():", *indented([*lines, "return result"]), "", "", "def main(arch):"]
    text += indented([f"qp.init(arch=arch{threads}, enable_fallback=False)", *mains, "return results"])
    options = ["debug=True"] * (has("debug") and not debug) + ["graph=True"] * (style == "kernel")
    return Host("\n".join(text) + "\n", calls, f"({', '.join(options)})" if options else "")


def _is_device(a):
    """Whether launches on it are not followed by a wait of their own."""
    return a.form in ("ndarray", "layouts", "sparse", "grid")


def _drive(style, has, call, ranks, given, waits, *, twice):
    """The lines that launch, and which scalar each launch of the kernel gets."""
    times = 2 if twice else 1
    plain = [0, 1, 2]
    replayed = has("replay")
    if style in (None, "kernel"):
        calls = [n for n in plain for _ in range(times)]
        head = ["step = qp.graph.replay(once)"] if replayed else []
        return [*head, f"for a in ({', '.join(given)}):", f"    {'step' if replayed else 'once'}(a)"], calls
    if ranks:
        lines = ["captured = qp.dist.capture(lambda: once(" + given[0] + "))"]
        lines += ["captured.launch()", "captured.launch()"]
        calls = [0] * 3 * times
        if replayed:
            lines += ["step = qp.graph.replay(once)", f"step({given[1]})", f"step({given[2]})"]
            calls += [1] * times + [2] * times
        return lines, calls
    if style == "nodes":
        node = [call(a).replace("k(", "graph.add_kernel(k, ", 1) for a in given[:2]]
        stream = "side" if has("streams") else ""
        return [
            "graph = qp.graph.Graph()", *node, "with graph.instantiate() as run:",
            *indented([f"run.launch({stream})"] * 2), *indented([f"{stream}.synchronize()"] if stream else ["qp.sync()"]),
        ], [0, 1, 0, 1]  # fmt: skip
    lines = ["with qp.graph.capture() as graph:", f"    once({given[0]})", f"    once({given[1]})"]
    lines += ["with graph.instantiate() as run:"]
    both = [n for n in (0, 1) for _ in range(times)]
    if not replayed:
        return [*lines, "    run.launch()", "    run.launch()", "    qp.sync()"], both * 2
    inner = ["def step(a):", *indented(["once(a)", "run.launch()", *waits]), "step = qp.graph.replay(step)"]
    inner += [f"for a in ({', '.join(given)}):", "    step(a)", "qp.sync()"]
    return [*lines, *indented(inner)], [m for n in plain for m in [n] * times + both]
