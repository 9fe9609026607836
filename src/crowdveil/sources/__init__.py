"""Sources of ballots: simulated crowds, the public Moral Machine layout, any table of comparisons."""
