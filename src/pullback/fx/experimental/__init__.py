"""The package torch.fx.experimental: what is below it is not provided, and says so when it is used."""
