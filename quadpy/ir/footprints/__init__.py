"""Which elements of its arrays a task touches, as formulas that the host evaluates for a launch."""

from quadpy.ir.footprints.find import footprints_of, with_numbers
from quadpy.ir.footprints.model import Box, Footprint

__all__ = ["Box", "Footprint", "footprints_of", "with_numbers"]
