"""Integers of an iteration, exact where that is known: what all questions about indices are answered from.

``numbers`` are what the host knows at a launch; ``forms`` are sums of loop variables and the like times such numbers,
with the conditions under which the kernel's arithmetic agrees; ``reader`` gives an expression its form.
"""
