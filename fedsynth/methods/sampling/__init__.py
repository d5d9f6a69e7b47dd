"""What methods share in drawing rows: labels, conditions, classifiers."""
