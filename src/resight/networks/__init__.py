"""ONNX files that users bring: running one, and preparing images for it."""
