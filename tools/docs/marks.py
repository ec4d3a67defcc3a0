"""Pages that are generated in part: ``<!-- print: name -->`` in a page becomes what the printer of this name returns.

``<!-- print: name argument … -->`` passes words to it.  Therefore, no page repeats what the code already says.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tools.docs import (
    conformance,
    differences,
    entries,
    faults,
    hazards,
    instructions,
    machines,
    nvidia,
    samples,
    structure,
    tables,
    waves,
)

_MARK = re.compile(r"^<!-- print: (?P<name>\w+)(?P<arguments>[\w .*\n]*) -->$", re.MULTILINE)

PRINTERS: dict[str, Callable[..., str]] = {
    "builtins": entries.print_builtins,
    "constants": entries.print_constants,
    "commands": tables.print_commands,
    "conformance": conformance.print_conformance,
    "differences": differences.print_differences,
    "crash": faults.print_crash,
    "distributions": machines.print_distributions,
    "doctor": machines.print_doctor,
    "fault": faults.print_fault,
    "lengths": structure.print_lengths,
    "lost": faults.print_lost,
    "hazard": hazards.print_hazard,
    "entries": entries.print_entries,
    "instructions": instructions.print_instructions,
    "methods": tables.print_methods,
    "missing": tables.print_missing,
    "names": entries.print_names,
    "nvidia": nvidia.print_nvidia,
    "promotion": tables.print_promotion,
    "settings": tables.print_settings,
    "targets": tables.print_targets,
    "scalars": tables.print_scalars,
    "effects": samples.print_effects_of,
    "ir": samples.print_ir_of,
    "output": samples.print_output_of,
    "report": samples.print_report_of,
    "sizes": structure.print_sizes,
    "source": samples.print_source_of,
    "waves": waves.print_waves,
}


def printed(markdown: str) -> str:
    """The text of a page with what its marks print."""
    return _MARK.sub(lambda mark: PRINTERS[mark["name"]](*mark["arguments"].split()), markdown)
