"""The web service of a study: polls, submissions, releases and decisions, over HTTP. It contains no mathematics."""
