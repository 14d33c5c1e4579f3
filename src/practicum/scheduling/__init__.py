"""Pure state machines for permits, deadlines, staleness. Does not know what a unit of work is."""
