"""What people see: the Split's status, Events, metrics. It reports decisions and makes none."""
