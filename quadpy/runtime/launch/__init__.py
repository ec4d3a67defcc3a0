"""Launches as data, before anything runs, and what captures them."""
