"""Generated code and machine code for a call that is like the last one."""
