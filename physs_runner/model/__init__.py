"""The generative model: priors, readouts, terms and parameters, built from a config."""
