"""Curves: smooth means whose prior the evidence chooses, seen through few basis functions."""
