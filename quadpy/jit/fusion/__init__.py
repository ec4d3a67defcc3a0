"""One launch for the tasks of several calls, or of a whole graph kernel."""
