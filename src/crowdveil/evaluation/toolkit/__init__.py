"""The parts of experiments: crowds, seeds, accuracy, results, sweeps and figures."""
