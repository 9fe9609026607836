"""Effects under differential privacy: what is asked, what it costs, how it is made."""
