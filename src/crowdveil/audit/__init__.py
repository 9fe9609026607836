"""Attacks on our own promises: what somebody who sees what leaves can really learn, measured and not believed."""
