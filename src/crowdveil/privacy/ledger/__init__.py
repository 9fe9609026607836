"""What has been spent of a privacy budget."""
