"""Runs functions as graphs."""
