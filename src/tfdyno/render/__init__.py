"""Files written for the user: source code, manifests, configurations."""
