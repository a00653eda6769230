"""What the output of a failed training says about its cause. Pure."""
