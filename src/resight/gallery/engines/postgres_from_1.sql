-- The tables of 0.1 had images and descriptors beside what is known of a sighting.
INSERT INTO images SELECT id, image FROM sightings;
INSERT INTO features SELECT id, feature FROM sightings;
ALTER TABLE sightings DROP COLUMN image, DROP COLUMN feature;
