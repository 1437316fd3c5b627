"""DP-MERF: noisy mean embeddings, released once, and a generator that matches them."""
