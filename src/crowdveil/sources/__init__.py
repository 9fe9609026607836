"""Where ballots come from: simulated crowds, the public Moral Machine layout, any table of comparisons."""
