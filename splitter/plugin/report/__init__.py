"""What only the plugin shows: the archive for a maintainer, the page of reasons."""
