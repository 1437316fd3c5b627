"""DP-SYN: private autoencoders, and mixtures of Gaussians over their codes by class, from noisy moments."""
