"""Training under privacy: Poisson batches, joint clipping, noise and the charge for them, in one compiled loop."""
