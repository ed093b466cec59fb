"""Tests of `urlset announce`: a package, so that its conftest does not conflict with another one."""
