"""Random attacks on urlset, each checks the guarantees."""
