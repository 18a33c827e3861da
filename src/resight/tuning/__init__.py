"""Choosing a setting from training people: Gram space, folds, candidates, the race."""
