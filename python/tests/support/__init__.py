"""Helpers of the tests: fixtures, and real parts that tests need."""
