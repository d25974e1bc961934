"""A record as text, other formats, pictures and an HTML page; the gate."""
