"""Ten minutes on a machine with a card: every command of tfdyno tried there, and judged."""
