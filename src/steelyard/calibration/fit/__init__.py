"""From equations to unknowns: what can be told, weights, covariances, gross errors, verdict."""
