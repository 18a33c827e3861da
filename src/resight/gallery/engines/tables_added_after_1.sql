-- Tables added after 0.1. Images and descriptors are apart, so that reading metadata does not read
-- them as well.
CREATE TABLE images (
    id text PRIMARY KEY REFERENCES sightings (id) ON DELETE CASCADE, content BLOB NOT NULL);
CREATE TABLE features (
    id text PRIMARY KEY REFERENCES sightings (id) ON DELETE CASCADE, content BLOB NOT NULL);
CREATE INDEX journal_by_name ON journal (name, number);
-- A row outlives its values: erasing empties its last four columns.
CREATE TABLE log (
    number integer PRIMARY KEY, hash text NOT NULL, commitment text NOT NULL,
    salt text, act text, subject_salt text, subjects text);
CREATE TABLE users (name text PRIMARY KEY, role text NOT NULL, password text NOT NULL);
CREATE TABLE credentials (
    digest text PRIMARY KEY, name text NOT NULL, role text NOT NULL, kind text NOT NULL,
    purpose text NOT NULL, begun float8 NOT NULL, ends float8);
