"""What generated operations share: recording, the slow road, and the texts that are written when first asked for."""
