"""The former place of `hub.load_state_dict_from_url`."""

from pullback.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
