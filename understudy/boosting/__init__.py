"""Private Post-GAN Boosting and discriminator rejection sampling, for every model of the house (docs/boosting.md)."""
