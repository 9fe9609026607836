"""The relay: a second party that knows who sends but not what, so that the host knows what but not who."""
