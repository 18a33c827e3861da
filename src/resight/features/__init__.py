"""Images to vectors, once, for everybody: describing, the feature store, own vectors."""
