"""StatefulSets in twins mode: their table of steps, and the steps that only they have."""
