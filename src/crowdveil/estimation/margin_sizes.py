"""How large margins are in a crowd is not known beforehand: a prior that lets what was seen tell.

Under one prior for all crowds, noise is taken for preference in a crowd that hardly has any, and a preference for noise
in one that is of one mind. So the size of margins is one of MARGINS, each as probable as the next. Of people whose
margins are normal with deviation s, the share 1/2 + arctan(s) / pi agrees in a dilemma: 65 %, 75 % or 85 %.
"""

from __future__ import annotations

import math

MARGINS = (0.5, 1.0, 2.0)
"""In deviations of the probit: octaves around one, preferred to (0.4, 0.75, 1.5) after both were tried on two files of
real people (``us_2097`` and kidney), which are therefore no independent test of them."""


def deviations(directions: int) -> list[float]:
    """Return the prior deviation along each of so many axes, for each size of margins."""
    return [margin / math.sqrt(max(directions, 1)) for margin in MARGINS]
