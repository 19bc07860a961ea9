"""Backends behind one port: what each server's wire says, and nothing about the fleet."""
