"""Code objects as files: ELF, its metadata, linking."""
