"""Studies: their features, how their dilemmas are drawn, their languages, and those that come with crowdveil."""
