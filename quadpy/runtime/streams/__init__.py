"""Streams, events and their order: what users hold, and the timelines that outlive it."""
