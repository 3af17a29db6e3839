"""The recorded graph: nodes, edges, what they saved, and how tensors are attached to them."""
