"""Where fleets run when one machine is too small."""
