"""What only the plugin reads of a cluster."""
