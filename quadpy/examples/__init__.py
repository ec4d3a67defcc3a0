"""Programs that draw pictures, to run from the command line and to read.

``python -m quadpy.examples.mpm88 --steps 500 --out mpm88.png``, or ``quadpy demo mpm88``.  They need pillow:
``pip install 'quadpy-lang[examples]'``.
"""
