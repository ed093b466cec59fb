"""Pages with charts about a build, a check, a comparison and an audit: one file each."""
