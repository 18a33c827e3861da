"""Timings and memory; ``python -m benchmarks`` runs them all."""
