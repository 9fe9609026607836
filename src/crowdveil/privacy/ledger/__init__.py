"""The privacy budget of each dataset: charges, deliveries, raises."""
