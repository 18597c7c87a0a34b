"""The nouns that every room shares, each declared once and typed; they import no room but `framestorm.stats`."""
