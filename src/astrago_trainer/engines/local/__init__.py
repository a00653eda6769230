"""Effective pods as processes of this machine."""
