"""What only the plugin decides or counts: as pure as `splitter.core`."""
