"""The papers' own experiments, with our methods in the place of theirs and their printed figures beside ours."""
