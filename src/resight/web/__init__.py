"""The page and JSON API over a gallery: ``resight serve GALLERY``."""
