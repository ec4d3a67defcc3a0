"""Small internal kernels: the upload of arguments, the conditions of loops."""
