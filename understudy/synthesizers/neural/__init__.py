"""What methods that train networks share: rows as coarse codes, and generators as released models."""
