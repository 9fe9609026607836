"""What is asked: the study, its factors, how dilemmas are drawn, its languages."""
