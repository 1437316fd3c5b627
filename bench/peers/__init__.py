"""Other libraries, each in an environment of its own, given the same rows and the same public facts as ours."""
