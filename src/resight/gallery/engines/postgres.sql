-- Values are stored as they are, so that a search for erased bytes finds them, and the planner keeps
-- no list of the most frequent names, which erasing would not reach.
ALTER TABLE documents ALTER content SET STORAGE EXTERNAL;
ALTER TABLE images ALTER content SET STORAGE EXTERNAL;
ALTER TABLE features ALTER content SET STORAGE EXTERNAL;
ALTER TABLE journal ALTER content SET STORAGE EXTERNAL, ALTER content SET STATISTICS 0,
    ALTER key SET STATISTICS 0;
ALTER TABLE sightings ALTER person SET STATISTICS 0, ALTER id SET STATISTICS 0,
    ALTER source SET STATISTICS 0;
ALTER TABLE images ALTER id SET STATISTICS 0;
ALTER TABLE features ALTER id SET STATISTICS 0;
ALTER TABLE log ALTER act SET STORAGE EXTERNAL, ALTER subjects SET STORAGE EXTERNAL,
    ALTER act SET STATISTICS 0, ALTER subjects SET STATISTICS 0;
