"""Descriptors in plain NumPy, which the compiled ones are tested against."""
