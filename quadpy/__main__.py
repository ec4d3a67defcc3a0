"""``python -m quadpy``: the command line where the script ``quadpy`` is not on the path."""

import sys

from quadpy.cli import main

if __name__ == "__main__":
    sys.exit(main())
