"""Changes of the tables, one file per version; added, never edited."""
