"""Where sightings come from: published datasets, own folders and tables, drawn cameras."""
