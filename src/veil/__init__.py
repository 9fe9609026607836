"""A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed."""
