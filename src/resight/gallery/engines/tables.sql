-- Tables that 0.1 already had; there `sightings` also held images and descriptors.
CREATE TABLE documents (name text PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE journal (
    number SERIAL, name text NOT NULL, key text NOT NULL, content text NOT NULL);
CREATE TABLE sightings (
    number SERIAL, id text NOT NULL UNIQUE, person text NOT NULL, camera text NOT NULL,
    time float8, sequence text NOT NULL, source text NOT NULL, added float8 NOT NULL);
CREATE TABLE changes (number bigint NOT NULL);
INSERT INTO changes VALUES (0);
