"""What people see: the Split's status, Events, metrics. It says what was decided, and decides nothing."""
