"""What a release says of itself to others: metadata for catalogues, an annex for an assessment."""
