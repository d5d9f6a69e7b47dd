"""What an evaluation found, in words."""
