"""What a launch comes to before anything runs, and what captures it."""
