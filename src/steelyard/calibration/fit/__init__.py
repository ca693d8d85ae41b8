"""From equations to unknowns: identifiability, weights, covariances, gross errors, verdict."""
