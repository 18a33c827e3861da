"""Metric learners: vectors + persons + cameras -> a distance. One published method per file."""
