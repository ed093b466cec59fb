"""Tests of `urlset announce`; a package, so that its conftest is separate."""
