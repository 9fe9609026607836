"""The relay: a second party that knows who sends and not what, so that the host knows what and not who."""
