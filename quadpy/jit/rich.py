"""Kernels in notebooks: signature, documentation and source."""

from __future__ import annotations

import inspect
import textwrap
from html import escape

from quadpy.jit.kernel import Kernel


def html_of(kernel: Kernel) -> str:
    """The texts that ``help`` and the source would show."""
    kind = "graph kernel" if kernel.graph else "kernel"
    head = f"<b>{kind}</b> <code>{escape(kernel.source.name)}{escape(str(inspect.signature(kernel)))}</code>"
    documentation = inspect.getdoc(kernel) if kernel.__doc__ else None
    text = f"<p>{escape(documentation)}</p>" if documentation else ""
    try:
        source = inspect.getsource(kernel.source.fn)
    except OSError:  # of exec
        return head + text
    place = escape(str(kernel.source.span).rpartition(":")[0])
    return f"{head}{text}<details><summary>{place}</summary><pre>{escape(textwrap.dedent(source))}</pre></details>"
