"""What the bridge adds to what a rank does anyway: the record, the watch, the guard, an open page."""
