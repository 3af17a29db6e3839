"""What is built on collectives: uneven inputs, and ways of averaging gradients."""
