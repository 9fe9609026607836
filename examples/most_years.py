"""A model that is no AI: it gives the kidney to whoever has more years of life to gain. For `align --ask-command`."""

import re
import sys

question = sys.stdin.read()
years = [int(found) for found in re.findall(r"(\d+) years of life to gain", question)]
print("A" if years[0] >= years[1] else "B")
