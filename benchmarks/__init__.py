"""What PERFORMANCE measures, as ratios in interleaved rounds on a loopback server."""
