"""What both kinds of split workloads share: on-boarding, steps, replica moves, rolls, order of writes."""
