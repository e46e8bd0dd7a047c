"""Helpers of the tests: fixtures, and checks for the programs that tests need."""
