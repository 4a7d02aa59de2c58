"""What an agent can be given; each installs itself through the channels it needs."""
