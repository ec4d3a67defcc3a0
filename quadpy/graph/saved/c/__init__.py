"""The sources of the reader in C."""
