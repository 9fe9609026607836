"""Parts that experiments share: crowds, scores with intervals, sweeps and figures."""
