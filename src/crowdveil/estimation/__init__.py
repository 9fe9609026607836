"""How people choose: the probit likelihood, each voter's fit, and the society as their mean."""
