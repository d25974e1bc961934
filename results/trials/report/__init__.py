"""A record as text, other formats, pictures and an HTML page; and what has
changed between two records."""
