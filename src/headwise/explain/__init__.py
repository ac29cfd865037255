"""What a model looks at."""
