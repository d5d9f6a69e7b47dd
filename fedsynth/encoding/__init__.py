"""Schema to arrays and back: shapes are fixed by the schema, bins by a release through the door."""
