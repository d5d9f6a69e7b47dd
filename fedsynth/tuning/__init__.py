"""Settings of models that will learn from real rows, searched on synthetic ones, at no cost."""
