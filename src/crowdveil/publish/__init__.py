"""From ballots or reports to what may be published: requests, releases, effects, groups."""
