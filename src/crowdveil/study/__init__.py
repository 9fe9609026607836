"""Studies: features, the drawing of dilemmas, translations, and the bundled studies."""
