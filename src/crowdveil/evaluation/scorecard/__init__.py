"""How well one release tells what the people of a ballot file chose. Exact, so for the holder of the ballots only."""
