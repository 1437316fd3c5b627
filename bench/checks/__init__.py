"""Numbers that were published elsewhere and must come out of this project's code."""
