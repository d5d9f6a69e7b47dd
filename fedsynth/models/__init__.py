"""Plain torch networks as functions of flat parameter vectors: no privacy, no federation."""
