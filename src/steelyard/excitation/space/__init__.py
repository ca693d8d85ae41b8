"""Where the arm may be: rules on points, capsules and their distances."""
