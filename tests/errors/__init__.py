"""What wrong calls raise: the calls in calls/, PyTorch's outcomes recorded in expected.txt."""
