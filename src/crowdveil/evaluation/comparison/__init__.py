"""Which mechanism is how accurate, at which epsilon, for how many voters: on synthetic crowds or on a real file."""
