"""What the report tells, a module a section."""
