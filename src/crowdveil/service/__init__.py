"""A study on the web: polls, what voters send, releases and decisions, over HTTP. No mathematics in here."""
