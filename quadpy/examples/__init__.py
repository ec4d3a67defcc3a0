"""Programs that draw pictures, each to be run from the command line and to be read.

``python -m quadpy.examples.mpm88 --steps 500 --out mpm88.png``, or ``quadpy demo mpm88``.  They need pillow, which
``pip install 'quadpy[examples]'`` brings.
"""
