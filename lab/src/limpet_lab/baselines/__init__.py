"""Methods that limpet is compared with."""
