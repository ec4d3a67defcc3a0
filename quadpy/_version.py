"""The version of quadpy, in a place that packaging, the cache and ``quadpy.__version__`` share."""

__version__ = "0.1.0"
