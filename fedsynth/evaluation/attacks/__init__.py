"""What attackers learn from released rows."""
