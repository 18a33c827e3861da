"""The paper's tables, measured from raw images."""
