"""The API: what can be asked and told over HTTP."""
