"""One file a concept: each page beside its JSON twin."""
