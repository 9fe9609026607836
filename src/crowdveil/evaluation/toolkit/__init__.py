"""What experiments are made of: crowds, seeds, accuracy, results, sweeps and figures."""
