"""Random attacks on urlset, each against what must hold whatever happens."""
