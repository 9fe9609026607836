"""An AI model beside the crowd of a release: its answers, how far the two agree, and asking it."""
