"""What ``quadpy doctor`` says about a machine with an AMD GPU: what is missing, in the order in which to mend it."""
