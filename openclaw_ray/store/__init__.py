"""State on disk: the SQLite journal, transcripts, places and their locks."""
