"""Tests of `urlset announce`: a package, so that its conftest is not taken for another one."""
