"""What the report draws: SVG that needs no script, told in words for who cannot see it."""
