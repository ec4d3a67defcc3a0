"""What calls cost the host, quadpy alone."""
