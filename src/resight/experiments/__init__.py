"""Experiments: feature store, Gram-space runner, configuration, the paper's tables."""
