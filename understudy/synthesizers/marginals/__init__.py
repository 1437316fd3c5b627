"""Methods that measure chosen tables and fit a graphical model to them: mst, aim."""
