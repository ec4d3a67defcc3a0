"""Pages that are generated in part: ``<!-- print: name -->`` in a page becomes what the printer of this name returns.

``<!-- print: name argument … -->`` passes words to it.  Therefore, no page repeats what the code already says.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import _conformance
import _differences
import _entries
import _faults
import _hazards
import _instructions
import _nvidia
import _samples
import _structure
import _tables
import _waves

_MARK = re.compile(r"^<!-- print: (?P<name>\w+)(?P<arguments>[\w .*\n]*) -->$", re.MULTILINE)

PRINTERS: dict[str, Callable[..., str]] = {
    "builtins": _entries.print_builtins,
    "constants": _entries.print_constants,
    "commands": _tables.print_commands,
    "conformance": _conformance.print_conformance,
    "differences": _differences.print_differences,
    "crash": _faults.print_crash,
    "fault": _faults.print_fault,
    "lengths": _structure.print_lengths,
    "lost": _faults.print_lost,
    "hazard": _hazards.print_hazard,
    "entries": _entries.print_entries,
    "instructions": _instructions.print_instructions,
    "methods": _tables.print_methods,
    "missing": _tables.print_missing,
    "names": _entries.print_names,
    "nvidia": _nvidia.print_nvidia,
    "promotion": _tables.print_promotion,
    "settings": _tables.print_settings,
    "targets": _tables.print_targets,
    "scalars": _tables.print_scalars,
    "effects": _samples.print_effects_of,
    "ir": _samples.print_ir_of,
    "output": _samples.print_output_of,
    "report": _samples.print_report_of,
    "sizes": _structure.print_sizes,
    "source": _samples.print_source_of,
    "waves": _waves.print_waves,
}


def printed(markdown: str) -> str:
    """The text of a page with what its marks print."""
    return _MARK.sub(lambda mark: PRINTERS[mark["name"]](*mark["arguments"].split()), markdown)
