"""Data under a schema: files, frames and arrays of tables and images, and sets that come along."""
